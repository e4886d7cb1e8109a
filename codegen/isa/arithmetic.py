"""The arithmetic that instructions share: exact sums of products, and requantisation."""

from __future__ import annotations

import numpy as np

_FLOAT32_DEPTH = 1024
"""Depth up to which float32 sums of int8 products are exact: 1024 * 128 * 128 = 2**24."""


def exact_dtype(depth: int) -> type:
    """The smaller floating-point type in which sums of `depth` int8 products are exact."""
    return np.float32 if depth <= _FLOAT32_DEPTH else np.float64


def product_sums(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """int8 values as matrices (M, K) and (N, K) of `exact_dtype` to (M, N) int32, wrapping.

    Floating-point products are used because they run on the BLAS. Every partial sum is a whole
    number of at most 2**24 in float32, below 2**53 in float64, so no order of summation rounds.
    """
    sums: np.ndarray = left @ right.T
    # A float outside int32 has no defined int32, an int64 wraps.
    if left.shape[1] >= 2**17:
        sums = sums.astype(np.int64)
    whole: np.ndarray = sums.astype(np.int32)
    return whole


def requantize(
    sums: np.ndarray, scale: np.ndarray | float, zero: int, low: int, high: int
) -> np.ndarray:
    """int32 to int8: ``clamp(round(float32(sum) * scale) + zero, low, high)``.

    The conversion, the product and the rounding each round to nearest, ties to even, in float32;
    low and high are within -128 and 127, so that the clamp saturates too.
    """
    with np.errstate(over="ignore"):
        scaled = sums.astype(np.float32) * np.asarray(scale, np.float32)
    return round_to_int8(scaled, zero, low, high)


def multiply_add(values: np.ndarray, factor: float, addend: np.ndarray | float) -> np.ndarray:
    """Integers to float32: ``float32(value * factor + addend)``.

    The product is exact; the sum is one of float64, which is then rounded to float32.
    """
    with np.errstate(over="ignore"):
        total: np.ndarray = (values.astype(np.float64) * factor + addend).astype(np.float32)
    return total


def round_to_int8(scaled: np.ndarray, zero: int, low: int, high: int) -> np.ndarray:
    """float32 to int8: ``clamp(round(value) + zero, low, high)``, ties to even."""
    rounded = np.rint(scaled)
    # Clipping to whole numbers first is the same, and keeps the sum exact.
    np.clip(rounded, np.float32(low - zero), np.float32(high - zero), out=rounded)
    narrow: np.ndarray = (rounded.astype(np.int16) + np.int16(zero)).astype(np.int8)
    return narrow
