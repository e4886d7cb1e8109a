"""What one kernel of an FKW convolution reads: each vector once, for all taps and rows.

This is the elimination of redundant loads of Niu et al., "PatDNN" (2020, section 5.4).
"""

from __future__ import annotations

from typing import NamedTuple

from tvm_ext.schedules.fkw_geometry import FkwGeometry
from tvm_ext.sparsity.kernel_patterns import Pattern


class Reader(NamedTuple):
    """A tap that reads a row: its number in the pattern, and how far below the output row it is."""

    number: int
    shift: int
    below: int


class Run(NamedTuple):
    """Neighbouring copied rows, `rows` of them from `first`, that the same taps read."""

    part: int
    first: int
    rows: int
    taps: tuple[Reader, ...]


def runs_of(g: FkwGeometry, pattern: Pattern, rows: int) -> list[Run]:
    """The copied rows that one kernel reads for a tile of `rows`.

    Copied and output rows are counted from those of the tile.
    """
    readers: dict[tuple[int, int], tuple[Reader, ...]] = {}
    for number, tap in enumerate(pattern):
        part, below, shift = g.taps[tap]
        for row in range(below, below + rows):
            known = readers.get((part, row), ())
            readers[part, row] = (*known, Reader(number, shift, below))
    runs: list[Run] = []
    for (part, row), taps in sorted(readers.items()):
        last = runs[-1] if runs else None
        if last and (last.part, last.first + last.rows, last.taps) == (part, row, taps):
            runs[-1] = last._replace(rows=last.rows + 1)
        else:
            runs.append(Run(part, row, 1, taps))
    return runs
