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
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import emit, spatial_pack_tasks
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_prologue import (
    pack_constants,
    supports_prologue,
)
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_stage import supports_pool
from tvm_ext.schedules.producer_stage import pack_producer, supports_producer
from tvm_ext.schedules.resize import ResizeWorkload
from tvm_ext.schedules.spatial_pack_kernel import chunk_extent, emit_spatial_pack
from tvm_ext.schedules.spatial_pack_weights import DenseWeights, group_blocks, pack_panels
from tvm_ext.schedules.tiles import Tile, best_tile, efficiency, legal_tiles
from tvm_ext.schedules.workload import PoolWorkload
from tvm_ext.target import CpuTarget


@register
class SpatialPack(Algorithm[ConvWorkload]):
    """Blocked (or plain) input, blocked output, weights packed in panels of output channels.

    Parameters of the plan: `tile` positions and `blocks` channel vectors in registers; `chunk`
    rows (or positions, when the kernel is 1x1) whose input stays in cache while all weights pass;
    `pieces` parts of the output channels that threads share; `stage` copies the chunk's input,
    each piece for itself, and applies the prologue, or computes the producer. With a pool stage
    the rows of a chunk are the pool's.
    """

    name: ClassVar[str] = "spatial_pack"
    workload_type: ClassVar[type] = ConvWorkload
    producers: ClassVar[tuple[tuple[type, ...], ...]] = (
        (), (ConvWorkload,), (PoolWorkload,), (ResizeWorkload,),
    )  # fmt: skip

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if w.groups > 1 and (w.out_channels // w.groups) % target.lanes:
            per_group = w.out_channels // w.groups
            return refuse(f"{per_group} output channels a group don't fill {target.lanes} lanes")
        return supports_prologue(w) and supports_pool(w, slices=True) and supports_producer(w)

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        if workload.producer:
            return ((target.lanes, target.lanes),)
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
            "stage": (True,) if spatial_pack_tasks.must_stage(workload, g) else (False, True),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, g = workload, ConvGeometry.of(workload)
        blocks = group_blocks(w, target)
        tile = best_tile(g.out[-1], blocks, target)
        panels = -(-blocks // tile.columns)
        options = [
            (self.cost(w, params, target), jobs, params)
            for jobs, params in spatial_pack_tasks.candidates(w, tile, panels, target)
        ]
        return min(options, key=lambda option: option[:2])[-1]

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g = workload, ConvGeometry.of(workload)
        blocks = group_blocks(w, target)
        padded = blocks * target.lanes * w.groups / w.out_channels
        share = efficiency(Tile(params["tile"], params["blocks"]), g.out[-1], blocks, target)
        multiply = 2 * w.macs * padded / (share * target.fma_peak)
        # Each panel of weights passes over the chunk.
        passes = -(-blocks // params["blocks"])
        return spatial_pack_tasks.seconds(
            w, params, target, multiply, passes, w.weight_bytes * padded
        )

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w = workload
        packed = pack_panels(w, params["blocks"], target, weights[0])
        if w.producer:
            return [packed, *pack_producer(w, target, weights[1:])]
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
