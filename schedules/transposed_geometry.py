"""Which outputs of a transposed convolution read which inputs, by which taps.

In one dimension, output o = phase + stride * j reads input i = (o + pad - tap * dilation) / stride
for the taps that make this whole. They depend on the phase only, and i - j is a constant for each:
so the outputs of one phase are an ordinary convolution of stride 1 with a part of the taps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import gcd

from tvm_ext.schedules.conv_columns import Taps
from tvm_ext.schedules.conv_geometry import lifted
from tvm_ext.schedules.conv_workload import ConvTransposeWorkload
from tvm_ext.schedules.workload import Shape


@dataclass(frozen=True)
class Phase:
    """The outputs `first + stride * j`, for j in `extents`, with the taps that reach them."""

    first: Shape
    extents: Shape
    taps: tuple[Taps, ...]

    @property
    def empty(self) -> bool:
        """Whether no tap reaches these outputs: they are the epilogue of zero."""
        return any(t.count == 0 for t in self.taps)


@dataclass(frozen=True)
class TransposedGeometry:
    """A transposed convolution with at least two spatial dimensions.

    Attributes
    ----------
    low, reach : tuple of int
        How far the taps read before and after an output's own index j.
    most : tuple of int
        Outputs of the longest phase.
    """

    spatial: Shape
    out: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    low: Shape
    reach: Shape
    most: Shape

    @staticmethod
    def of(w: ConvTransposeWorkload) -> TransposedGeometry:
        w = lifted(w)
        spatial, out, kernel = w.spatial, w.out_spatial, w.kernel
        stride, dilation, before = w.strides, w.dilation, w.pad_before
        most = tuple(-(-o // s) for o, s in zip(out, stride, strict=True))
        g = TransposedGeometry(spatial, out, kernel, stride, dilation, before, (), (), most)
        ranges = [g._offsets(dim) for dim in range(len(spatial))]
        low, reach = tuple(-lowest for lowest, _ in ranges), tuple(highest for _, highest in ranges)
        return TransposedGeometry(spatial, out, kernel, stride, dilation, before, low, reach, most)

    def _taps(self, dim: int, phase: int) -> Taps:
        s, d, reach = self.stride[dim], self.dilation[dim], phase + self.before[dim]
        step = s // gcd(s, d)
        fitting = [t for t in range(self.kernel[dim]) if (reach - t * d) % s == 0]
        if not fitting:
            return Taps(0)
        offset = (reach - fitting[0] * d) // s
        return Taps(len(fitting), fitting[0], step, offset, -step * d // s)

    def _offsets(self, dim: int) -> tuple[int, int]:
        """Lowest and highest i - j of any phase."""
        offsets = [0]
        for phase in range(self.stride[dim]):
            taps = self._taps(dim, phase)
            offsets += [taps.offset + j * taps.stride for j in range(taps.count)]
        return min(offsets), max(offsets)

    def phases(self) -> Iterator[Phase]:
        for first in product(
            *(range(min(s, o)) for s, o in zip(self.stride, self.out, strict=True))
        ):
            extents = tuple(
                -(-(o - f) // s) for o, f, s in zip(self.out, first, self.stride, strict=True)
            )
            taps = tuple(self._taps(dim, f) for dim, f in enumerate(first))
            yield Phase(first, extents, taps)
