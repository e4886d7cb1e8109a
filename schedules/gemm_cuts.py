"""How a matrix product is best cut: register tile, parts of the reduction, tasks of the threads."""

from __future__ import annotations

from tvm_ext.schedules import cuts
from tvm_ext.schedules.tiles import Tile, efficiency, legal_tiles
from tvm_ext.target import CpuTarget

# Waking the threads takes about as long as one core needs for this many operations.
PARALLEL_FLOPS = 500_000
# Shares of the L2 cache that the left side's chunk and one panel of weights may take.
_CHUNK_SHARE = 0.5
_PANEL_SHARE = 0.125
_MOST_PARTS = 64


def panel_tiles(rows: int, n: int, target: CpuTarget) -> list[Tile]:
    """The legal register tiles; no panel is wider than n, unless n is less than a vector."""
    return legal_tiles(rows, max(1, n // target.lanes), target)


def panel_efficiency(tile: Tile, rows: int, n: int, target: CpuTarget) -> float:
    """Share of the FMA peak, with the columns that overlapped panels compute twice."""
    span = tile.columns * target.lanes
    panels = -(-n // span)
    return efficiency(tile, rows, panels * tile.columns, target) * n / (panels * span)


def best_panel_tile(rows: int, n: int, target: CpuTarget) -> Tile:
    """The register tile of highest modelled efficiency; ties go to the narrowest panel, of which
    most rows fit the L1 cache."""
    return max(
        panel_tiles(rows, n, target),
        key=lambda t: (
            round(panel_efficiency(t, rows, n, target), 3),
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


def share_out(rows: int, n: int, k: int, parts: int, tile: Tile, target: CpuTarget,
              others: int = 1) -> tuple[int, int]:  # fmt: skip
    """(chunks, pieces) such that a chunk stays in cache and every core has as much to do.

    `others` counts independent products of this size, which are shared out before.
    """
    panels = -(-n // (tile.columns * target.lanes))
    chunks = -(-rows // max(4, int(_CHUNK_SHARE * target.l2 / (4 * k // parts))))
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
