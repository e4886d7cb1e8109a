"""Register tiles of sparse kernels: how large a panel of channels and how many vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_ext.schedules.cuts import split_extent
from tvm_ext.target import CpuTarget

_FMA_PIPES = 2
_FMA_LATENCY = 4
# Reads of a cache line a cycle, by the passes of a vector through a unit, and instructions, that a
# core sustains beside multiply-adds. A cycle is the time of two vectors of multiply-adds: with two
# passes it's two of the core's.
_LINES = {1: 1.6, 2: 2.0}
_ISSUE = 3.2
# Share of the shorter of loads and multiply-adds that isn't hidden behind the other.
_EXPOSED = 0.3
# Instructions of the loop over kept columns that aren't loads or multiply-adds.
_LOOP = 4


@dataclass(frozen=True)
class SparseTile:
    """`channels` outputs that share their columns x `vectors` of neighbouring positions."""

    channels: int
    vectors: int

    def cycles(self, lines: float, target: CpuTarget) -> float:
        """Cycles for one column: the tightest of four limits, and what loads and FMAs don't hide.

        Parameters
        ----------
        lines : float
            Cache lines in which what is loaded at once lies: 1 where vectors are aligned.
        """
        count = self.channels * self.vectors
        passes = target.lanes // target.unit_lanes
        loads = (self.vectors * lines + self.channels + 1) / _LINES[passes]
        multiply = count / _FMA_PIPES
        # A vector that is multiplied once is the multiply-add's own operand.
        separate = self.channels + (self.vectors if self.channels > 1 else 0)
        tightest = max(
            multiply, loads, (count + separate + _LOOP) / (passes * _ISSUE), _FMA_LATENCY / passes
        )
        return tightest + _EXPOSED * min(multiply, loads)


def fits(tile: SparseTile, target: CpuTarget) -> bool:
    """Whether the accumulators, and what one vector or one channel needs beside, are registers."""
    beside = min(tile.channels, tile.vectors) + 1
    return tile.channels * tile.vectors + beside <= target.registers


def legal_tiles(
    panels: Sequence[int], positions: int, channels: int, target: CpuTarget
) -> list[SparseTile]:
    """Every tile, its channels one of `panels`, that fits the registers and the output."""
    most = -(-positions // target.lanes)
    return [
        SparseTile(r, c)
        for r in panels
        if r <= channels or r == min(panels)
        for c in range(1, most + 1)
        if fits(SparseTile(r, c), target)
    ]


def pass_cycles(tile: SparseTile, vectors: int, lines: float, target: CpuTarget) -> float:
    """Cycles in which all tiles of a row of `vectors` take one column."""
    return sum(
        count * SparseTile(tile.channels, size).cycles(lines, target)
        for count, size in split_extent(vectors, tile.vectors)
    )
