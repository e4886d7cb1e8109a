"""A convolution's input as AMX reads it: positions side by side, whatever the stride.

Tiles are rows that lie one distance apart in memory. For that a task's input is copied, padded,
into one plane for each phase of the strides: position (y, x) of plane (p, q) is what row
y * stride + p and column x * stride + q of the padded input hold. A tap then reads one plane, from
a place that is the tap's, one position after the other. Rows follow one another without a gap, so
that a tile may go over the end of one; where both ends of a row are padding they share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm_ext.schedules.conv_workload import ConvWorkload


@dataclass(frozen=True)
class Planes:
    """The copy of what `rows` rows of the output of a two-dimensional convolution need.

    Attributes
    ----------
    pitch : int
        Positions from one row to the next.
    shift : tuple of int
        Rows and columns from the first tap to the last one in its plane.
    phases : tuple of int
        Planes for rows and for columns.
    shared : int
        Columns of padding that a row shares with the next one.
    """

    w: ConvWorkload
    rows: int
    pitch: int
    shift: tuple[int, int]
    phases: tuple[int, int]
    shared: int

    @staticmethod
    def of(w: ConvWorkload, rows: int) -> Planes:
        """Of a workload with two spatial dimensions."""
        reach = [d * (k - 1) for d, k in zip(w.dilation, w.kernel, strict=True)]
        down, across = (r // s for r, s in zip(reach, w.strides, strict=True))
        phases = [min(s, r + 1) for r, s in zip(reach, w.strides, strict=True)]
        width = w.conv_spatial[1] + across
        shared = 0
        if w.strides[1] == 1:
            after = width - w.pad_before[1] - w.spatial[1]
            shared = max(0, min(w.pad_before[1], after))
        return Planes(w, rows, width - shared, (down, across), (phases[0], phases[1]), shared)

    @property
    def height(self) -> int:
        """Rows of a plane."""
        return self.rows + self.shift[0]

    @property
    def size(self) -> int:
        """Positions of a plane; odd, so that its channels spread over the sets of a cache."""
        return (self.height * self.pitch + self.shared) | 1

    @property
    def all_positions(self) -> int:
        """Positions of all planes."""
        return self.phases[0] * self.phases[1] * self.size

    @property
    def positions(self) -> int:
        """From the first output position to the last, those between two rows included."""
        return (self.rows - 1) * self.pitch + self.w.conv_spatial[1]

    def tap(self, ky: Any, kx: Any) -> Any:
        """Where a tap reads for position 0."""
        y, x = ky * self.w.dilation[0], kx * self.w.dilation[1]
        sy, sx = self.w.strides
        plane = (y % sy) * self.phases[1] + x % sx
        return plane * self.size + (y // sy) * self.pitch + x // sx

    def columns(self, phase: int) -> tuple[int, int]:
        """Which columns of a plane, from the first to before the second, hold input."""
        before, stride, width = self.w.pad_before[1], self.w.strides[1], self.w.spatial[1]
        first = min(self.pitch, max(0, -(-(before - phase) // stride)))
        stop = min(self.pitch, (width - 1 + before - phase) // stride + 1)
        return first, max(first, stop)
