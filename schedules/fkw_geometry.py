"""Where an FKW convolution reads and adds up: rows of the input, and a shift for each tap.

A task has a copy of the input rows that it needs, as they are: no columns of padding, and every row
starts at a vector. Strides are taken apart into parts of the input, so that a tap adds a copied row
times its weight to all columns of an output row at once. Taps of different columns add to different
sums, which are as far apart as the taps: output column x is the sum of x + s of each shift s. So no
tap reads between two vectors, and all taps of a kernel share what is loaded. The shift is made once
a filter, where else each kernel would make it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tvm import tirx

from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.sparsity.kernel_patterns import Pattern

LINE = 16  # float32 values in a cache line


class Tap(NamedTuple):
    """What a tap reads and where it adds: see `FkwGeometry`, whose `parts` and `shifts` it counts.

    `row` is how far below an output row the copied one is.
    """

    part: int
    row: int
    shift: int


@dataclass(frozen=True)
class FkwGeometry:
    """A two-dimensional convolution in tasks of `chunk` rows x the columns of `strip` vectors.

    Narrow rows are folded: the vector has several of them, each from its own block of the task's
    rows, that of lanes [i * lanes / fold, (i + 1) * lanes / fold) from block i.

    Attributes
    ----------
    channels : int
        Of the input.
    spatial, out, stride : tuple of int
    taps : dict of int to Tap
        Those that a pattern has.
    parts : tuple of (int, int)
        First row and column of each part of the input: the part has every stride-th from there.
    shifts : tuple of int
        How far before (negative) or behind an output column the sums of its taps are, rising.
    first_row : int
        How far below an output row's own input row (above, if negative) the first copied one is.
    """

    channels: int
    spatial: tuple[int, int]
    out: tuple[int, int]
    stride: tuple[int, int]
    taps: dict[int, Tap]
    parts: tuple[tuple[int, int], ...]
    shifts: tuple[int, ...]
    first_row: int
    lanes: int
    chunk: int
    strip: int
    fold: int

    @staticmethod
    def of(
        w: ConvWorkload, patterns: tuple[Pattern, ...], lanes: int, chunk: int = 1, strip: int = 1,
        fold: int = 1,
    ) -> FkwGeometry:  # fmt: skip
        used = sorted({tap for pattern in patterns for tap in pattern})
        reads = {}
        for tap in used:
            at = divmod(tap, w.kernel[1])
            reach = [t * d - b for t, d, b in zip(at, w.dilation, w.pad_before, strict=True)]
            reads[tap] = [divmod(r, s) for r, s in zip(reach, w.strides, strict=True)]
        parts = tuple(sorted({(row[1], column[1]) for row, column in reads.values()}))
        shifts = tuple(sorted({column[0] for _, column in reads.values()}))
        first_row = min((row[0] for row, _ in reads.values()), default=0)
        taps = {
            tap: Tap(parts.index((row[1], column[1])), row[0] - first_row, shifts.index(column[0]))
            for tap, (row, column) in reads.items()
        }
        return FkwGeometry(
            w.in_channels, w.spatial, w.conv_spatial, w.strides, taps, parts, shifts, first_row,
            lanes, chunk, strip, fold,
        )  # fmt: skip

    @property
    def block_rows(self) -> int:
        """Output rows of a block: what the rows of one lane are."""
        return -(-self.chunk // self.fold)

    def block_start(self, block: Any) -> Any:
        """The first row of a block; the last ones overlap if they have more than there are."""
        start, most = block * self.block_rows, self.chunk - self.block_rows
        if isinstance(start, int):
            return min(start, most)
        return tirx.min(start, most) if self.fold * self.block_rows > self.chunk else start

    @property
    def block_lanes(self) -> int:
        """Lanes of a vector that a block has."""
        return self.lanes // self.fold

    @property
    def rows(self) -> int:
        """Rows of a block that are copied of each part."""
        return self.block_rows + max((tap.row for tap in self.taps.values()), default=0)

    @property
    def width(self) -> int:
        """Elements of a copied row."""
        return self.strip * self.lanes

    @property
    def plane(self) -> int:
        """Elements from one channel of the copy to the next: an odd number of cache lines.

        What one tile reads of all channels then lies in different sets of the caches.
        """
        per_line = max(LINE, self.lanes)
        size = len(self.parts) * -(-self.width // per_line) * self.rows * per_line
        return (size // LINE | 1) * LINE

    @property
    def size(self) -> int:
        """Elements of a task's copy."""
        return self.channels * self.plane

    def place(self, part: int, vector: Any, row: Any) -> Any:
        """Where a vector of a copied row starts in its plane.

        The cache lines of one place in the rows follow one another: a tile reads neighbours.
        """
        per_line = max(LINE, self.lanes)
        vectors = per_line // self.lanes
        strip = part * -(-self.strip // vectors) + vector // vectors
        return (strip * self.rows + row) * per_line + vector % vectors * self.lanes

    def columns_of(self, part: int) -> int:
        """Columns of the input that a part has and that some output reads."""
        own = -(-(self.spatial[1] - self.parts[part][1]) // self.stride[1])
        return max(0, min(own, self.out[1] + self.shifts[-1]))

    @property
    def columns(self) -> int:
        """Columns of the longest part."""
        return max((self.columns_of(p) for p in range(len(self.parts))), default=0)

    @property
    def span(self) -> int:
        """Columns from the first to the last shift."""
        return self.shifts[-1] - self.shifts[0] if self.shifts else 0

    @property
    def whole(self) -> bool:
        """Whether a task has all columns."""
        return self.width >= self.columns * self.fold

    @property
    def strip_columns(self) -> int:
        """Output columns of a task: neighbours share the columns that their shifts reach into."""
        return self.out[1] if self.whole else self.width - self.span

    @property
    def margins(self) -> tuple[int, int]:
        """Columns before the first and behind the last, which are zero, that the shifts reach."""
        if not self.shifts:
            return 0, 0
        return max(0, -self.shifts[0]), max(0, self.out[1] + self.shifts[-1] - self.columns)

    @property
    def strips(self) -> tuple[int, ...]:
        """Widths, in vectors, that tasks may have: all columns, or enough for one of the output."""
        most = max(1, -(-self.columns // self.lanes))
        return tuple(n for n in range(1, most + 1) if n == most or n * self.lanes > self.span)

    def may_fold(self, fold: int) -> bool:
        """Whether so many rows in a vector have the zeros between them that their shifts reach."""
        return fold == 1 or self.columns + max(self.margins) <= self.lanes // fold
