"""How fast a register tile can run: the model by which every FMA kernel picks its tile."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_ext.schedules.cuts import split_extent
from tvm_ext.target import CpuTarget

# Of the cores that LLVM knows with these vector units: two FMA pipes of latency 4, two loads a
# cycle (one pipe at 512 bits would halve both sides, so the ratio, which is all that counts here,
# stays).
_FMA_PIPES = 2
_FMA_LATENCY = 4
_LOADS = 2
# What is left of the peak when not one register is free: LLVM then spills around the inner loop.
_FULL_REGISTERS = 0.96


@dataclass(frozen=True)
class Tile:
    """rows x columns accumulators; rows are broadcast scalars, columns are vectors of weights."""

    rows: int
    columns: int


def registers_needed(tile: Tile, target: CpuTarget) -> int:
    """Accumulators, the weights, and a broadcast where the FMA can't take one from memory."""
    # AVX-512 broadcasts in the FMA's memory operand, but LLVM folds only a load with one user.
    broadcast = 0 if target.isa == "avx512" and tile.columns == 1 else 1
    return tile.rows * tile.columns + tile.columns + broadcast


def cycles_a_step(tile: Tile) -> float:
    """Cycles for one reduction step of the whole tile, the tightest of three limits."""
    return max(
        tile.rows * tile.columns / _FMA_PIPES,
        (tile.rows + tile.columns) / _LOADS,
        float(_FMA_LATENCY),
    )


def efficiency(tile: Tile, rows: int, columns: int, target: CpuTarget) -> float:
    """Share of the FMA peak reached on a rows x columns output.

    Rows are cut into tiles of nearly equal height; the last panel of columns overlaps the one
    before it and computes some columns twice.
    """
    panels = -(-columns // tile.columns)
    cycles = sum(
        count * panels * cycles_a_step(Tile(height, tile.columns))
        for count, height in split_extent(rows, tile.rows)
    )
    full = registers_needed(tile, target) >= target.registers
    return rows * columns / _FMA_PIPES / cycles * (_FULL_REGISTERS if full else 1.0)


def legal_tiles(rows: int, columns: int, target: CpuTarget) -> list[Tile]:
    """Every tile that fits the registers and isn't larger than the output."""
    tiles = [
        Tile(r, c)
        for r in range(1, min(rows, 30) + 1)
        for c in range(1, min(columns, 6) + 1)
        if registers_needed(Tile(r, c), target) <= target.registers
    ]
    return tiles or [Tile(1, 1)]


def best_tile(rows: int, columns: int, target: CpuTarget) -> Tile:
    """The tile of highest modelled efficiency; ties go to the one that asks less of the L2 cache
    (a step reads a line of weights a vector, and of the data only a value a row), then to the
    larger."""
    return max(
        legal_tiles(rows, columns, target),
        key=lambda t: (
            round(efficiency(t, rows, columns, target), 3),
            -(t.rows + t.columns * target.lanes) / (t.rows * t.columns),
            t.rows * t.columns,
        ),
    )
