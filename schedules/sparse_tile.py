"""Register tiles of sparse kernels: how large a panel of channels and how many vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_ext.schedules.cuts import split_extent
from tvm_ext.target import CpuTarget

_FMA_PIPES = 2
_FMA_LATENCY = 4
# Reads of a cache line a cycle, and instructions, that a core sustains beside multiply-adds.
_LINES = 1.6
_ISSUE = 3.2
_LINE_BYTES = 64
# Share of the shorter of loads and multiply-adds that isn't hidden behind the other.
_EXPOSED = 0.3
# Instructions of the loop over kept columns that aren't loads or multiply-adds.
_LOOP = 4


@dataclass(frozen=True)
class SparseTile:
    """`channels` outputs that share their columns x `vectors` of neighbouring positions."""

    channels: int
    vectors: int

    def cycles(self, aligned: bool, target: CpuTarget) -> float:
        """Cycles for one column: the tightest of four limits, and what loads and FMAs don't hide.

        Parameters
        ----------
        aligned : bool
            Whether vectors of positions start at cache lines. If not, some lie in two of them.
        """
        count = self.channels * self.vectors
        lines = 1.0 if aligned else 2.0 - (_LINE_BYTES - 4 * (target.lanes - 1)) / _LINE_BYTES
        loads = (self.vectors * lines + self.channels + 1) / _LINES
        multiply = count / _FMA_PIPES
        # A vector that is multiplied once is the multiply-add's own operand.
        separate = self.channels + (self.vectors if self.channels > 1 else 0)
        tightest = max(multiply, loads, (count + separate + _LOOP) / _ISSUE, float(_FMA_LATENCY))
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


def pass_cycles(tile: SparseTile, vectors: int, aligned: bool, target: CpuTarget) -> float:
    """Cycles in which all tiles of a row of `vectors` take one column."""
    return sum(
        count * SparseTile(tile.channels, size).cycles(aligned, target)
        for count, size in split_extent(vectors, tile.vectors)
    )
