"""Factors of int8 -> int8 layers: the float32 numbers that give a model's own results.

A model takes a value through its real one, ``rne(f32(f32(q * sx) / sy))``; the accelerator has one
factor. Near ties, the two could differ, so of the float32 numbers around ``sx / sy`` the one is
taken with which the fewest of the 256 values do: nearly always none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm_ext.codegen.arithmetic import min_misses
from tvm_ext.codegen.network_layers import FULL_RANGE, Pair, TensorSpec

Real = Callable[[np.ndarray], np.ndarray]


def requantize_factor(
    x: TensorSpec,
    y: TensorSpec,
    values: np.ndarray,
    real: Real,
    slope: float = 1.0,
    clamp: Pair = FULL_RANGE,
) -> float:
    """The factor f with which ``rne(f32(values * f)) + zy`` is what the model computes.

    Parameters
    ----------
    values : ndarray
        Centred inputs ``q - zx``, all of the same sign where `real` bends at 0.
    real : callable
        What the model does with real values, float32 -> float32.
    slope : float
        Of `real`, where it doesn't clamp.
    clamp : (low, high)
        Limits of the results, outside of which nothing matters.
    """
    exact = real(values.astype("float32") * np.float32(x.scale)) / np.float32(y.scale)
    wanted = np.clip(np.rint(exact) + y.zero_point, *clamp)

    def misses(factor: np.float32) -> int:
        found = np.rint(values.astype("float32") * factor) + y.zero_point
        return int((np.clip(found, *clamp) != wanted).sum())

    return float(min_misses(np.float32(x.scale * slope / y.scale), misses))


def centred_range(x: TensorSpec) -> np.ndarray:
    """Every value less the zero point, int64."""
    return np.arange(-128, 128, dtype="int64") - x.zero_point


def identity(x: np.ndarray) -> np.ndarray:
    """For `requantize_factor` where only scales change."""
    return x
