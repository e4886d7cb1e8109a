"""How a matrix product is best cut: register tile, parts of the reduction, tasks of the threads."""

from __future__ import annotations

from math import gcd
from typing import Any

from tvm_ext.schedules import costs, cuts
from tvm_ext.schedules.emit import LINE_BYTES
from tvm_ext.schedules.gemm import Blocking
from tvm_ext.schedules.tiles import Tile, cycles_a_step, efficiency, legal_tiles
from tvm_ext.target import CpuTarget

# Waking the threads takes about as long as one core needs for this many operations.
PARALLEL_FLOPS = 500_000
# Shares of the L2 cache that the left side's chunk and one panel of weights may take.
_CHUNK_SHARE = 0.5
_PANEL_SHARE = 0.125
_MOST_PARTS = 64
# Addresses this far apart share a set of the L1 cache: a page, as its index is taken from there.
_L1_PERIOD = 4096
# Cycles for a row's line that another row of the tile pushed out, from the L2 cache.
_CONFLICT_CYCLES = 1


def panel_tiles(rows: int, n: int, target: CpuTarget) -> list[Tile]:
    """The legal register tiles; no panel is wider than n, unless n is less than a vector."""
    return legal_tiles(rows, max(1, n // target.lanes), target)


def panel_efficiency(tile: Tile, rows: int, n: int, target: CpuTarget, stride: int = 1) -> float:
    """Share of the FMA peak, with the columns that overlapped panels compute twice.

    `stride` is that of the left side's rows, in floats: where more lines of a tile's rows share a
    set of the L1 cache than it has ways, each step finds them gone.
    """
    span = tile.columns * target.lanes
    panels = -(-n // span)
    share = efficiency(tile, rows, panels * tile.columns, target) * n / (panels * span)
    sets = _L1_PERIOD // max(LINE_BYTES, gcd(4 * stride, _L1_PERIOD))
    # One way is for the weights that pass through.
    if -(-min(tile.rows, rows) // sets) > target.l1d // _L1_PERIOD - 1:
        cycles = cycles_a_step(tile)
        share *= cycles / (cycles + _CONFLICT_CYCLES * tile.rows)
    return share


def best_panel_tile(rows: int, n: int, target: CpuTarget, stride: int = 1) -> Tile:
    """The register tile of highest modelled efficiency; ties go to the narrowest panel, of which
    most rows fit the L1 cache. `stride` as for `panel_efficiency`."""
    return max(
        panel_tiles(rows, n, target),
        key=lambda t: (
            round(panel_efficiency(t, rows, n, target, stride), 3),
            -t.columns,
            t.rows,
        ),
    )


def legal_parts(k: int) -> tuple[int, ...]:
    """Into how many parts the reduction can be cut."""
    return cuts.divisors(k, _MOST_PARTS)


def best_parts(k: int, tile: Tile, target: CpuTarget) -> int:
    """The fewest parts whose panel of weights takes its share of the L2 cache."""
    panel = 4 * k * tile.columns * target.lanes
    enough = [d for d in legal_parts(k) if panel <= d * _PANEL_SHARE * target.l2]
    return enough[0] if enough else legal_parts(k)[-1]


def least_chunks(rows: int, floats: int, target: CpuTarget) -> int:
    """The fewest parts of the rows that take their share of the L2 cache, `floats` each row."""
    return -(-rows // max(4, int(_CHUNK_SHARE * target.l2 / (4 * floats))))


def even_chunks(least: int, rows: int, target: CpuTarget) -> int:
    """At least so many parts of the rows, of which every core has as many."""
    return min(rows, -(-least // target.cores) * target.cores)


def packed_space(rows: int, n: int, k: int, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
    """The legal cuts of a product with weights in panels."""
    tiles = panel_tiles(rows, n, target)
    return {
        "tile": tuple(sorted({t.rows for t in tiles})),
        "blocks": tuple(sorted({t.columns for t in tiles})),
        "chunks": tuple(range(1, rows + 1)),
        "pieces": tuple(range(1, -(-n // target.lanes) + 1)),
        "k_parts": legal_parts(k),
    }


def share_out(rows: int, n: int, k: int, parts: int, tile: Tile, target: CpuTarget,
              others: int = 1) -> tuple[int, int]:  # fmt: skip
    """(chunks, pieces) such that a chunk stays in cache and every core has as much to do.

    `others` counts independent products of this size, which are shared out before.
    """
    panels = -(-n // (tile.columns * target.lanes))
    chunks = least_chunks(rows, k // parts, target)
    tasks = chunks * others
    if 2 * rows * n * k * others < PARALLEL_FLOPS or tasks % target.cores == 0:
        return chunks, 1
    if tasks > target.cores:
        while chunks * others % target.cores and chunks < rows // tile.rows:
            chunks += 1
        return chunks, 1
    needed = -(-target.cores // others)
    # Columns are shared first: then a core reads its weights only.
    if panels >= 4 * needed:
        return chunks, needed
    if rows >= 2 * needed * tile.rows:
        return needed, 1
    return chunks, min(panels, needed)


def packed_seconds(b: Blocking, nbytes: int, target: CpuTarget, stride: int = 1) -> float:
    """Seconds of a product with weights in panels, beside `nbytes` bytes of memory traffic.

    `stride` as for `panel_efficiency`.
    """
    share = panel_efficiency(Tile(b.tile, b.blocks), b.chunk, b.n, target, stride)
    chunks, pieces = b.tasks
    cores = costs.busy_cores(chunks * pieces, target)
    # The last chunk may compute rows again.
    macs = chunks * b.chunk * b.n * b.k
    # Weights come from memory once, and from the next cache level again for each chunk.
    traffic = nbytes + 0.25 * 4 * b.k * b.n * (chunks - 1)
    traffic += 8 * b.rows * b.n * 0.25 * (b.parts - 1)
    return 2 * macs / (share * target.fma_peak * cores) + 0.5 * traffic / target.memory_bandwidth
