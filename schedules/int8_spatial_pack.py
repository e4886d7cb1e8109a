"""Direct convolution of 8-bit integers on channel-blocked data, sums in registers.

As `spatial_pack` (Zheng and Chen, "Optimizing CNN Model Inference on CPUs", 2018), with words of
neighbouring input channels in place of single ones: an instruction such as VNNI's ``vpdpbusd``
multiplies a word of one position with those of a vector of output channels, and adds the products
to int32 sums. The sums are requantised in registers, and each result is written once, as a byte.

Works for any kernel, stride, padding, dilation and batch in two dimensions, without groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.dot_product import dot_product, tile_target
from tvm_ext.schedules.int8_spatial_pack_kernel import emit_int8_spatial_pack, output_blocks
from tvm_ext.schedules.quantized_geometry import QuantizedGeometry
from tvm_ext.schedules.quantized_workload import QuantizedConvWorkload
from tvm_ext.schedules.requantize import folded_bias, padded_channels
from tvm_ext.schedules.tiles import Tile, best_tile, efficiency, legal_tiles
from tvm_ext.target import CpuTarget

# Beyond this many chunks nothing gets better.
_MOST_TASKS = 64
_TASK_SECONDS = 2e-7
# Multiply-adds an instruction slot over those of a float32 FMA, by the channels in a word: widened
# ones need an addition as well, and so do plain ones, whose multiplication takes two slots.
GAIN = {4: 4.0, 2: 1.0, 1: 0.33}


@register
class Int8SpatialPack(Algorithm[QuantizedConvWorkload]):
    """Blocked (or plain) input, blocked output, weight words packed in panels.

    Parameters of the plan: `tile` positions and `blocks` channel vectors in registers; `chunk`
    rows (or positions, when the kernel is 1x1) whose input stays in cache while all weights pass;
    `pieces` parts of the output channels that threads share; `stage` copies the chunk's words,
    each piece for itself.
    """

    name: ClassVar[str] = "int8_spatial_pack"
    workload_type: ClassVar[type] = QuantizedConvWorkload

    def supports(self, workload: QuantizedConvWorkload, target: CpuTarget) -> Support:
        if workload.groups > 1:
            return refuse(f"{workload.groups} groups; only 1")
        return YES

    def layouts(
        self, workload: QuantizedConvWorkload, target: CpuTarget
    ) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes), (0, target.lanes))

    def space(
        self, workload: QuantizedConvWorkload, target: CpuTarget
    ) -> dict[str, tuple[Any, ...]]:
        g = _geometry(workload, target)
        blocks = output_blocks(workload, target)
        tiles = legal_tiles(g.out[1], blocks, tile_target(target))
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunk": tuple(range(1, g.extent + 1)),
            "pieces": tuple(range(1, blocks + 1)),
            "stage": (True, False),
        }

    def default(self, workload: QuantizedConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, g = workload, _geometry(workload, target)
        blocks = output_blocks(w, target)
        tile = best_tile(g.out[1], blocks, tile_target(target))
        panels = -(-blocks // tile.columns)
        unit = tile.rows if g.flat else 1
        options = []
        for tasks in range(1, min(g.extent, _MOST_TASKS) + 1):
            share = -(-g.extent // tasks)
            chunk = min(g.extent, -(-share // unit) * unit)
            if -(-g.extent // chunk) != tasks:
                continue
            for pieces in costs.piece_counts(panels, target):
                params = {
                    "tile": tile.rows, "blocks": tile.columns, "chunk": chunk, "pieces": pieces,
                    "stage": must_stage(w, target),
                }  # fmt: skip
                options.append((self.cost(w, params, target), tasks * pieces, params))
        return min(options, key=lambda option: option[:2])[-1]

    def cost(self, workload: QuantizedConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g = workload, _geometry(workload, target)
        dot, blocks = dot_product(target), output_blocks(w, target)
        padded = blocks * target.lanes / w.out_channels * g.words * dot.group / w.in_channels
        share = efficiency(Tile(params["tile"], params["blocks"]), g.out[1], blocks, target)
        multiply = 2 * w.macs * padded / (share * target.fma_peak * GAIN[dot.group])
        tasks = -(-g.extent // params["chunk"]) * w.batch
        positions = params["chunk"]
        if not g.flat:
            positions = g.rows(params["chunk"]) * g.columns
        input_bytes = 4 * positions * g.words
        staging = 0.0
        if params["stage"]:
            staging = 2 * input_bytes / target.shared_bandwidth * params["pieces"]
        spilled = costs.overflow(input_bytes, -(-blocks // params["blocks"]), target)
        weights = 4 / dot.group * w.weight_bytes * padded
        work = multiply + (staging + spilled) * tasks + costs.reread(weights, tasks - 1, target)
        work += tasks * _TASK_SECONDS
        return costs.shared_out(work, tasks * params["pieces"], w.bytes, target)

    def check(self, workload: QuantizedConvWorkload, params: Params, target: CpuTarget) -> str:
        if wrong := super().check(workload, params, target):
            return wrong
        if not params["stage"] and must_stage(workload, target):
            return (
                f"{self.name}.stage = False; allowed: True, where the input is padded or has to "
                f"be brought into the form that {dot_product(target).name} takes"
            )
        return ""

    def pack(
        self,
        workload: QuantizedConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, v, dot = workload, target.lanes, dot_product(target)
        g, blocks, width = _geometry(w, target), output_blocks(w, target), params["blocks"]
        values, bias, scales = weights
        missing = blocks * v - w.out_channels
        data = np.pad(values.transpose(0, 2, 3, 1), [(0, missing)] + [(0, 0)] * 3)
        words = dot.pack(data).reshape(blocks, v, *w.kernel, g.words // g.step, g.step)
        # (panel, block, lane, row, column, outer, step) to (.., outer, row, column, step, block,
        # lane)
        panels = cuts.cut_panels(words, 0, width, at=0).transpose(0, 5, 3, 4, 6, 1, 2)
        zero = w.x_zero + dot.shift(w.dtype)
        sums = values.reshape(w.out_channels, -1).sum(1, dtype="int64")
        count = max(blocks, width)
        return [
            np.ascontiguousarray(panels),
            padded_channels(folded_bias(bias, sums, zero), count * v, 0).reshape(count, v),
            padded_channels(scales, count * v, 1).reshape(count, v),
        ]

    def kernel(
        self,
        workload: QuantizedConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        # A plain input's channels have to be put together first.
        chosen = {**params, "stage": params["stage"] or layout[0] == 0}
        return emit.build(lambda: emit_int8_spatial_pack(workload, chosen, target, layout[0]))

    def tolerance(self, workload: QuantizedConvWorkload, params: Params) -> float:
        return 0.0


def must_stage(w: QuantizedConvWorkload, target: CpuTarget) -> bool:
    """Whether the instruction can't read a blocked input in place."""
    dot = dot_product(target)
    return dot.group != 4 or dot.shift(w.dtype) != 0 or any(w.pad_before + w.pad_after)


def _geometry(w: QuantizedConvWorkload, target: CpuTarget) -> QuantizedGeometry:
    return QuantizedGeometry.of(w, dot_product(target), target.lanes)
