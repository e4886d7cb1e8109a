"""How scales of a model become the float32 factors of an int8 layer, bit for bit as ONNX Runtime's.

Each function says the order of its roundings; NumPy's float32 arithmetic is IEEE's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tvm_ext.codegen.network_layers import TensorSpec

Scales: TypeAlias = tuple[float, float]
_NEIGHBOURS = 8


def product_scales(x_scale: float, weight_scales: np.ndarray, y_scale: float) -> np.ndarray:
    """``f32(f32(sx * sw) / sy)`` of each output channel, float32.

    `weight_scales` is (Cout,), or a single one as ().
    """
    weights = np.asarray(weight_scales, "float32")
    return np.asarray(np.float32(x_scale) * weights / np.float32(y_scale), "float32")


def average_scale(x: TensorSpec, y: TensorSpec, count: int) -> np.float32:
    """Factor of an average over `count` pixels: ``f32(sx / f32(sy * count))``."""
    divisor = np.float32(y.scale) * np.float32(count)
    scale: np.float32 = np.float32(x.scale) / divisor
    return scale


def add_registers(
    a: TensorSpec, b: TensorSpec, y: TensorSpec, shift: int = 0
) -> tuple[Scales, float]:
    """Scales and offset of an `Add`: ``f32(sa / sy)``, ``f32(sb / sy)`` and, with fused products,
    ``offset = f32(zy - f32(za * scales[0] + f32(zb * scales[1])))``.

    Parameters
    ----------
    shift : int
        The layer's: 128 where the model's tensors are uint8.
    """
    ratios = (np.float32(s.scale) / np.float32(y.scale) for s in (a, b))
    scale_a, scale_b = (float(ratio) for ratio in ratios)
    zeros = [spec.zero_point + shift for spec in (a, b, y)]
    inner = fused(np.asarray(zeros[0]), scale_a, np.float32(zeros[1] * np.float32(scale_b)))
    return (scale_a, scale_b), float(np.float32(np.float32(zeros[2]) - inner))


def fused(
    x: np.ndarray, factor: float | np.float32, addend: np.ndarray | float | np.float32
) -> np.ndarray:
    """``f32(x * factor + addend)``, float32; the product and the sum are not rounded apart."""
    wide: np.ndarray = np.asarray(x, "float64") * np.float64(factor) + np.asarray(addend, "float64")
    return wide.astype("float32")


def min_misses(start: np.float32, misses: Callable[[np.float32], int]) -> np.float32:
    """Of `start` and the float32 numbers around it, nearest first, the one with fewest misses."""
    up = down = best = start
    fewest = misses(start)
    for _ in range(_NEIGHBOURS):
        if fewest == 0:
            break
        up, down = np.nextafter(up, np.float32(np.inf)), np.nextafter(down, np.float32(-np.inf))
        for candidate in (up, down):
            if (missed := misses(candidate)) < fewest:
                best, fewest = candidate, missed
    return best
