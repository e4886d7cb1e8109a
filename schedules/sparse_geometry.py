"""Where a sparse convolution reads: one number for each (channel, tap) column of its weights.

A task has a planar copy of the rows that it needs, padded, one plane a channel. Strides are taken
apart into phases, so that neighbouring positions of the output always read neighbours: the element
that a column gives to position p is at `offset(column) + p`. Positions are those of the output's
rows one after the other, with the few columns between them that only the input has.

Vectors of positions then start anywhere in a cache line, and most lie in two. With `shifted` planes
each tap of the last dimension has a phase of its own, which starts at the element that the tap
gives to a row's first position: as many copies as the kernel is wide, whose rows can be aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from tvm_ext.schedules.conv_geometry import lifted, pointwise
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.workload import Shape

_LINE = 16  # float32 values in a cache line
# Share of a shifted row that may be added to align the next.
_MOST_ADDED = 0.15


@dataclass(frozen=True)
class SparseGeometry:
    """A convolution with at least two spatial dimensions in tasks of `chunk` rows.

    A 1x1 convolution without stride has all its positions in one row, of which a task takes
    `chunk`.

    Attributes
    ----------
    channels : int
        That are copied at a time.
    spatial, out, kernel, stride, dilation, before : tuple of int
        As the kernel loops over them.
    flat : bool
    chunk : int
    slack : int
        Elements after the last plane that vectors may reach into.
    shifted : bool
    """

    channels: int
    spatial: Shape
    out: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    flat: bool
    chunk: int
    slack: int = 0
    shifted: bool = False

    @staticmethod
    def of(
        w: ConvWorkload, chunk: int, slack: int = 0, channels: int | None = None,
        shifted: bool = False,
    ) -> SparseGeometry:  # fmt: skip
        w = lifted(w)
        channels = channels or w.in_channels
        if pointwise(w) and set(w.strides) == {1}:
            one, row = (1, 1), (1, prod(w.conv_spatial))
            return SparseGeometry(channels, row, row, one, one, one, (0, 0), True, chunk, slack)
        return SparseGeometry(
            channels, w.spatial, w.conv_spatial, w.kernel, w.strides, w.dilation,
            w.pad_before, False, chunk, slack, shifted,
        )  # fmt: skip

    @property
    def extent(self) -> int:
        """What tasks share: positions of a flat convolution, else rows (of one slice)."""
        return self.out[-1] if self.flat else self.out[-2]

    @property
    def phases(self) -> Shape:
        """For each dimension, the parts that the stride takes the input apart into.

        Only those that a tap reads, which are the first ones, or all. Shifted planes have one for
        each element that the last dimension's taps reach.
        """
        counts = [
            1 + max(t * d % s for t in range(k))
            for k, d, s in zip(self.kernel, self.dilation, self.stride, strict=True)
        ]
        if self.shifted:
            counts[-1] = 1 + (self.kernel[-1] - 1) * self.dilation[-1]
        return tuple(counts)

    @property
    def copied(self) -> Shape:
        """Extents of one phase of a task's copy."""
        if self.flat:
            return (1, self.chunk)
        counts = (*(1,) * (len(self.out) - 2), self.chunk, self.out[-1])
        extents = [
            n + d * (k - 1) // s
            for n, d, k, s in zip(counts, self.dilation, self.kernel, self.stride, strict=True)
        ]
        if self.shifted:
            extents[-1] = _aligned(self.out[-1])
        return tuple(extents)

    @property
    def pitch(self) -> int:
        """Positions from one row of the output to the next."""
        return self.copied[-1]

    def lines(self, lanes: int) -> float:
        """Cache lines that `lanes` positions, loaded at once, lie in, on average."""
        if self.flat:
            return 1.0
        # What the places are multiples of where vectors of a tap start.
        step = gcd(self.pitch, lanes, _LINE) if self.shifted else 1
        starts = range(0, _LINE, step)
        return 1 + sum(start + lanes > _LINE for start in starts) / len(starts)

    @property
    def positions(self) -> int:
        """Positions from a task's first to its last."""
        return self.chunk if self.flat else (self.chunk - 1) * self.pitch + self.out[-1]

    @property
    def plane(self) -> int:
        """Elements from one channel of the copy to the next: an odd number of cache lines.

        What one tile reads of all channels then lies in different sets of the caches.
        """
        lines = -(-prod(self.phases) * prod(self.copied) // _LINE)
        return (lines | 1) * _LINE

    @property
    def size(self) -> int:
        """Elements of a task's copy."""
        return self.channels * self.plane + self.slack

    def place(self, phase: Shape, at: Shape) -> int:
        """Where an element of a phase is in its plane; also for expressions."""
        index = 0
        for x, extent in zip((*phase, *at), (*self.phases, *self.copied), strict=True):
            index = index * extent + x
        return index

    def offsets(self) -> np.ndarray:
        """What each column adds to a position.

        Returns
        -------
        ndarray of int32
            (channels, taps).
        """
        taps = []
        for tap in np.ndindex(*self.kernel):
            reach = [t * d for t, d in zip(tap, self.dilation, strict=True)]
            phase = [r % s for r, s in zip(reach, self.stride, strict=True)]
            at = [r // s for r, s in zip(reach, self.stride, strict=True)]
            if self.shifted:
                phase[-1], at[-1] = reach[-1], 0
            taps.append(self.place(tuple(phase), tuple(at)))
        every = np.arange(self.channels)[:, None] * self.plane + np.array(taps)
        return every.astype("int32")


def _aligned(width: int) -> int:
    """A row's elements: up to a cache line's end, or to half a line's, if those are few more."""
    for step in (_LINE, _LINE // 2):
        padded = -(-width // step) * step
        if padded - width <= _MOST_ADDED * padded:
            return padded
    return width
