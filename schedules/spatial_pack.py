"""Direct convolution on channel-blocked data, with the output tile held in registers.

Spatial pack (Zheng and Chen, "Optimizing CNN Model Inference on CPUs", 2018): each vector holds
`lanes` output channels of one position; a tile of positions x channel blocks accumulates over all
input channels and taps, then the epilogue runs on the registers and every result is written once.
`spatial_pack_kernel` has the loops.

Works for 1, 2 and 3 spatial dimensions, any kernel, stride, padding, dilation, batch, and groups
whose output channels fill whole vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_prologue import (
    pack_constants,
    prologue_seconds,
    supports_prologue,
)
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_stage import repetition, rows_needed, stage_seconds, supports_pool
from tvm_ext.schedules.spatial_pack_kernel import chunk_extent, emit_spatial_pack
from tvm_ext.schedules.spatial_pack_weights import DenseWeights, group_blocks, reduction_step
from tvm_ext.schedules.tiles import Tile, best_tile, efficiency, legal_tiles
from tvm_ext.target import CpuTarget

# Beyond this many chunks nothing gets better.
MOST_TASKS = 64
TASK_SECONDS = 2e-7


@register
class SpatialPack(Algorithm[ConvWorkload]):
    """Blocked (or plain) input, blocked output, weights packed in panels of output channels.

    Parameters of the plan: `tile` positions and `blocks` channel vectors in registers; `chunk`
    rows (or positions, when the kernel is 1x1) whose input stays in cache while all weights pass;
    `pieces` parts of the output channels that threads share; `stage` copies the chunk's input,
    each piece for itself, and applies the prologue. With a pool stage the rows of a chunk are the
    pool's.
    """

    name: ClassVar[str] = "spatial_pack"
    workload_type: ClassVar[type] = ConvWorkload

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if w.groups > 1 and (w.out_channels // w.groups) % target.lanes:
            per_group = w.out_channels // w.groups
            return refuse(f"{per_group} output channels a group don't fill {target.lanes} lanes")
        return supports_prologue(w) and supports_pool(w)

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes), (0, target.lanes))

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        g = ConvGeometry.of(workload)
        tiles = legal_tiles(g.out[-1], group_blocks(workload, target), target)
        extent = chunk_extent(workload, g)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunk": tuple(range(1, extent + 1)),
            "pieces": tuple(range(1, group_blocks(workload, target) + 1)),
            "stage": (True,) if must_stage(workload, g) else (False, True),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, g = workload, ConvGeometry.of(workload)
        blocks, extent = group_blocks(w, target), chunk_extent(w, g)
        tile = best_tile(g.out[-1], blocks, target)
        panels = -(-blocks // tile.columns)
        by_position = g.flat and not g.must_stage
        unit = tile.rows if by_position else 1
        options = []
        for tasks in range(1, min(extent, MOST_TASKS) + 1):
            share = -(-extent // tasks)
            chunk = min(extent, -(-share // unit) * unit)
            if -(-extent // chunk) != tasks:
                continue
            for pieces in sorted({1, min(target.cores, panels)}):
                params = {
                    "tile": tile.rows, "blocks": tile.columns, "chunk": chunk, "pieces": pieces,
                    "stage": must_stage(w, g),
                }  # fmt: skip
                options.append((self.cost(w, params, target), tasks * pieces, params))
        return min(options, key=lambda option: option[:2])[-1]

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g = workload, ConvGeometry.of(workload)
        blocks = group_blocks(w, target)
        padded = blocks * target.lanes * w.groups / w.out_channels
        share = efficiency(Tile(params["tile"], params["blocks"]), g.out[-1], blocks, target)
        multiply = 2 * w.macs * padded / (share * target.fma_peak)
        multiply *= repetition(w, params["chunk"])

        extent = chunk_extent(w, g)
        slices = 1 if g.flat else prod(g.out[:-2])
        tasks = -(-extent // params["chunk"]) * w.batch * slices
        jobs = tasks * w.groups * params["pieces"]
        if g.flat:
            positions = params["chunk"] * (prod(g.staged[1:]) if g.must_stage else 1)
        else:
            halo = max(0, g.kernel[-2] - g.stride[-2])
            rows = rows_needed(w, params["chunk"]) * g.stride[-2] + halo
            positions = rows * g.staged[-1] * prod(g.kernel[:-2])
        input_bytes = 4 * positions * w.in_channels / w.groups
        staging = 0.0
        if params["stage"]:
            copying = 2 * input_bytes / target.shared_bandwidth
            staging = max(copying, prologue_seconds(w, input_bytes, target)) * params["pieces"]
        # Each panel of weights passes over the chunk.
        spilled = costs.overflow(input_bytes, -(-blocks // params["blocks"]), target)
        # Weights that overflow it come from there for each chunk.
        weights = w.weight_bytes * padded
        reread = costs.reread(weights, tasks - 1, target)
        work = multiply + (staging + spilled) * tasks * w.groups + reread
        work += tasks * w.groups * TASK_SECONDS + stage_seconds(w, target)
        return costs.shared_out(work, jobs, w.bytes, target)

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, v, width = workload, target.lanes, params["blocks"]
        kernel = ConvGeometry.of(w).kernel
        blocks, per_group = group_blocks(w, target), w.in_channels // w.groups
        step = reduction_step(w, target)
        data = weights[0].reshape(w.groups, w.out_channels // w.groups, per_group, *kernel)
        missing = blocks * v - data.shape[1]
        if missing:
            data = np.pad(data, [(0, 0), (0, missing)] + [(0, 0)] * (data.ndim - 2))
        data = data.reshape(w.groups, blocks, v, per_group // step, step, *kernel)
        panels = cuts.cut_panels(data, 1, width, at=1)
        # (group, panel, block, lane, outer, step, *taps) to (.., outer, *taps, step, block, lane)
        taps = range(6, panels.ndim)
        panels = panels.transpose(0, 1, 4, *taps, 5, 2, 3)
        packed = np.ascontiguousarray(panels.reshape(-1, *panels.shape[2:]))
        return [packed, *pack_constants(w, target, weights[1:])]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        weights = DenseWeights(workload, params, target)
        return emit.build(lambda: emit_spatial_pack(workload, params, target, layout, weights))


def must_stage(w: ConvWorkload, g: ConvGeometry) -> bool:
    """Whether the multiply-adds can't read the input in place."""
    return g.must_stage or w.prologue is not None
