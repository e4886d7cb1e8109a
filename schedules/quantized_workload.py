"""Layers of 8-bit integers: convolutions, matrix products and pools between quantised tensors.

Activations are int8 or uint8, inputs and outputs alike, with one scale and zero point a tensor.
Zero points and clamps here are in the tensor's own type. Weights are symmetric int8. ``rne``
rounds halves to even, ``f32`` to float32: results are defined bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tvm_ext.schedules.conv_workload import ConvGeometry
from tvm_ext.schedules.workload import Shape, window_counts

Pair = tuple[int, int]


@dataclass(frozen=True)
class Requantization:
    """``clip(rne(f32(f32(acc) * scale)) + zero, low, high)``, the scale one a channel.

    Attributes
    ----------
    zero : int
        Zero point of the result.
    low, high : int
        Limits of the result.
    """

    zero: int
    low: int
    high: int


@dataclass(frozen=True)
class QuantizedConvWorkload(ConvGeometry):
    """A two-dimensional convolution, N C H W: ``acc = bias + sum((x - x_zero) * w)`` in int32.

    Padding is `x_zero`. Weights are int8 (out_channels, in_channels / groups, KH, KW), followed by
    the bias, int32 (out_channels,), and the scales, float32 (out_channels,). Groups are 1, or as
    many as input and output channels.
    """

    x_zero: int
    result: Requantization
    dtype: str
    groups: int = 1

    @property
    def out_spatial(self) -> Shape:
        return window_counts(
            self.spatial, self.kernel, self.strides, self.pad_before, self.pad_after, self.dilation
        )

    @property
    def macs(self) -> int:
        return prod(self.out_shape) * (self.in_channels // self.groups) * prod(self.kernel)

    @property
    def flops(self) -> int:
        return 2 * self.macs

    @property
    def weight_bytes(self) -> int:
        return self.out_channels * (self.in_channels // self.groups) * prod(self.kernel)

    @property
    def bytes(self) -> int:
        """Bytes that must move at least once."""
        return prod(self.in_shape) + prod(self.out_shape) + self.weight_bytes


@dataclass(frozen=True)
class QuantizedMatmulWorkload:
    """Product (M, K) x (K, N) with constant weights; arithmetic as of a convolution.

    Weights are int8 (K, N), followed by bias and scales, (N,).
    """

    rows: int
    depth: int
    columns: int
    x_zero: int
    result: Requantization
    dtype: str

    @property
    def out_shape(self) -> Shape:
        return (self.rows, self.columns)

    @property
    def macs(self) -> int:
        return self.rows * self.depth * self.columns

    @property
    def flops(self) -> int:
        return 2 * self.macs

    @property
    def weight_bytes(self) -> int:
        return self.depth * self.columns

    @property
    def bytes(self) -> int:
        return self.rows * (self.depth + self.columns) + self.weight_bytes


@dataclass(frozen=True)
class QuantizedPoolWorkload:
    """Pooling of N C H W.

    ``max``: the largest value of a window, padding left out. ``global_average``: of
    ``acc = sum(x - x_zero)`` over all positions, requantised with the factor `scale`, a float32.
    """

    kind: str
    shape: Shape
    kernel: Shape
    strides: Shape
    pad_before: Shape
    pad_after: Shape
    dtype: str
    x_zero: int = 0
    scale: float = 1.0
    result: Requantization | None = None

    @property
    def out_shape(self) -> Shape:
        dense = (1,) * len(self.kernel)
        counts = window_counts(
            self.shape[2:], self.kernel, self.strides, self.pad_before, self.pad_after, dense
        )
        return (*self.shape[:2], *counts)

    @property
    def flops(self) -> int:
        return prod(self.out_shape) * prod(self.kernel)

    @property
    def bytes(self) -> int:
        return prod(self.shape) + prod(self.out_shape)
