"""From int32 sums in registers to 8-bit results: per-channel factors, rounding, limits."""

from __future__ import annotations

import numpy as np
from tvm import tirx

from tvm_ext.schedules import vectors
from tvm_ext.schedules.quantized_workload import Requantization


def requantized(
    total: tirx.Expr, scale: tirx.Expr, result: Requantization, dtype: str, lanes: int
) -> tirx.Expr:
    """``clip(rne(f32(f32(total) * scale)) + zero)`` of a vector.

    Adding the zero point in float32 is exact where it matters: beyond 2**24 the limits decide.
    """

    def constant(value: int) -> tirx.Expr:
        return vectors.constant(float(value), "float32", lanes)

    real = tirx.nearbyint(vectors.cast(total, "float32", lanes) * scale)
    if result.zero:
        real = real + constant(result.zero)
    limited = tirx.max(tirx.min(real, constant(result.high)), constant(result.low))
    return vectors.cast(limited, dtype, lanes)


def folded_bias(bias: np.ndarray, sums: np.ndarray, zero: int) -> np.ndarray:
    """The bias less `zero` times the sums of the weights, as 32 bits hold it.

    Sums of unshifted products wrap alike, so that the total is the exact one.
    """
    total: np.ndarray = bias.astype("int64") - zero * sums.astype("int64")
    return total.astype("int32")


def padded_channels(array: np.ndarray, channels: int, value: float) -> np.ndarray:
    """A constant a channel, extended to so many channels."""
    full = np.full(channels, value, array.dtype)
    full[: array.size] = array
    return full
