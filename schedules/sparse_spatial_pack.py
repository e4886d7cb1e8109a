"""Spatial pack whose filters have zeros in the same places: it multiplies only what is kept.

A vector holds output channels, as in the dense one, so block pruning by as many filters as it has
lanes, or by twice as many, leaves vectors without a zero; and nothing about its input, output,
epilogue and pool differs from a dense layer's. `spatial_pack_kernel` and `kept_weights` have the
loops.

Filters that share a pattern so that a compiler can use it are the idea of XGen (2022, section 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import emit, spatial_pack_tasks
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_prologue import pack_constants, supports_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.kept_weights import KeptWeights
from tvm_ext.schedules.pool_stage import supports_pool
from tvm_ext.schedules.sparse_support import supports_zeros
from tvm_ext.schedules.spatial_pack_kernel import chunk_extent, emit_spatial_pack
from tvm_ext.schedules.spatial_pack_weights import group_blocks
from tvm_ext.schedules.tiles import Tile, efficiency, legal_tiles
from tvm_ext.sparsity import ColumnPanels, equal_shares
from tvm_ext.sparsity.run_pointers import run_pointers
from tvm_ext.sparsity.summary import PANEL_ROWS
from tvm_ext.target import CpuTarget

# Cycles in which a vector of results is cleared, finished and stored while the next tile is being
# multiplied, and what each accumulator beyond so many adds: those of one tile then are all that a
# core looks ahead. Measured on Zen 4 with vectors of 8 and 16 lanes.
_FINISH_CYCLES = 0.5
_AHEAD = 14
_STALL_CYCLES = 0.06
# Instructions a cycle that a core sustains, and those of a column beside loads and multiply-adds.
_ISSUE = 3.8
_LOOP = 6


@register
class SparseSpatialPack(Algorithm[ConvWorkload]):
    """Blocked input and output; of the weights, the columns of each panel that aren't zero.

    Parameters of the plan as of `SpatialPack`; `blocks` vectors of filters share their columns,
    and `pieces` parts of the panels are equal in what they keep.
    """

    name: ClassVar[str] = "sparse_spatial_pack"
    workload_type: ClassVar[type] = ConvWorkload
    storage: ClassVar[str] = "block"

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if not (support := supports_zeros(w)):
            return support
        per_group = w.out_channels // w.groups
        if per_group % target.lanes:
            return refuse(
                f"{per_group} output channels a group don't fill vectors of {target.lanes}"
            )
        return supports_prologue(w) and supports_pool(w)

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes),)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        g = ConvGeometry.of(workload)
        tiles = _tiles(workload, target)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunk": tuple(range(1, chunk_extent(workload, g) + 1)),
            "pieces": tuple(range(1, _fewest_panels(workload, target) + 1)),
            "stage": (True,) if spatial_pack_tasks.must_stage(workload, g) else (False, True),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, panels = workload, _fewest_panels(workload, target)
        options = [
            (self.cost(w, params, target), jobs, params)
            for tile in _best_tiles(w, target)
            for jobs, params in spatial_pack_tasks.candidates(w, tile, panels, target)
        ]
        return min(options, key=lambda option: option[:2])[-1]

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g, tile = workload, ConvGeometry.of(workload), Tile(params["tile"], params["blocks"])
        kept = w.sparsity.kept(tile.columns * target.lanes) if w.sparsity else 0
        every = w.batch * prod(w.conv_spatial)
        cycles = kept * tile.columns * every / 2 / _share(tile, g.out[-1], target)
        vectors = every * w.out_channels / target.lanes
        stall = _STALL_CYCLES * max(0, tile.rows * tile.columns - _AHEAD)
        cycles += (_FINISH_CYCLES + stall) * vectors
        # Two vectors of multiply-adds a cycle are the peak.
        multiply = cycles * 4 * target.lanes / target.fma_peak
        # Each panel takes its columns of the chunk from where that is.
        passes = kept / (w.in_channels * prod(w.kernel))
        nbytes = 4 * kept * (tile.columns * target.lanes + 1)
        # A 1x1 kernel reads a line once for each panel that keeps one of the block's channels.
        panels = w.out_channels / w.groups / (tile.columns * target.lanes)
        touched = 1 - (1 - min(1.0, passes / panels)) ** target.lanes
        lines = panels * touched if g.flat else 0.0
        return spatial_pack_tasks.seconds(w, params, target, multiply, passes, nbytes, lines)

    def pack(
        self, workload: ConvWorkload, params: Params, target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:  # fmt: skip
        w, lanes, width = workload, target.lanes, params["blocks"]
        kept = KeptWeights(w, params, target)
        offsets = kept.offsets().reshape(w.groups, -1)
        matrices = weights[0].reshape(w.groups, w.out_channels // w.groups, -1)
        panels = [ColumnPanels.from_dense(matrix, width * lanes) for matrix in matrices]
        counts = [np.diff(p.pointers) for p in panels]
        shares = [equal_shares(run_pointers(c), params["pieces"]) for c in counts]
        values = np.concatenate([p.values for p in panels]).reshape(-1, width, lanes)
        columns = [own[p.columns] for own, p in zip(offsets, panels, strict=True)]
        return [
            values, np.concatenate(columns), run_pointers(np.concatenate(counts), "int32"),
            np.concatenate(shares), *pack_constants(w, target, weights[1:]),
        ]  # fmt: skip

    def kernel(
        self, workload: ConvWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        weights = KeptWeights(workload, params, target)
        return emit.build(lambda: emit_spatial_pack(workload, params, target, layout, weights))


def _share(tile: Tile, positions: int, target: CpuTarget) -> float:
    """Share of the FMA peak, where multiply-adds or instructions are what binds.

    With AVX-512, a broadcast that is multiplied once is the multiply-add's own operand.
    """
    count = tile.rows * tile.columns
    is_operand = tile.columns == 1 and target.isa == "avx512"
    instructions = count + tile.columns + (0 if is_operand else tile.rows) + _LOOP
    waiting = max(1.0, instructions / _ISSUE / (count / 2))
    return efficiency(tile, positions, tile.columns, target) / waiting


def _widths(w: ConvWorkload, target: CpuTarget) -> list[int]:
    """Vectors of filters that may share their columns: no panel reaches beyond its group."""
    blocks = group_blocks(w, target)
    return [b for b in range(1, blocks + 1) if not blocks % b and b * target.lanes in PANEL_ROWS]


def _fewest_panels(w: ConvWorkload, target: CpuTarget) -> int:
    return group_blocks(w, target) // max(_widths(w, target))


def _tiles(w: ConvWorkload, target: CpuTarget) -> list[Tile]:
    widths = _widths(w, target)
    positions = ConvGeometry.of(w).out[-1]
    return [t for t in legal_tiles(positions, max(widths), target) if t.columns in widths]


def _best_tiles(w: ConvWorkload, target: CpuTarget) -> list[Tile]:
    """For each width of a panel, the tile of highest modelled efficiency.

    Of all, and of those that leave nothing to wait for at their end.
    """
    positions, tiles = ConvGeometry.of(w).out[-1], _tiles(w, target)
    groups = [
        [t for t in tiles if t.columns == width and t.rows * width <= most]
        for width in sorted({tile.columns for tile in tiles})
        for most in (_AHEAD, max(t.rows * t.columns for t in tiles))
    ]
    best = [
        max(group, key=lambda tile: (round(_share(tile, positions, target), 3), tile.rows))
        for group in groups
        if group
    ]
    return list(dict.fromkeys(best))
