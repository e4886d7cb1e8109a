"""An inverted residual block as one kernel: 1x1, depthwise and 1x1 convolution.

Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks" (2018), section 5.1,
compute the wide tensors of a block in parts, so that they are never in memory: there in parts of
the channels, here in strips of rows, so that the last convolution's sums stay in registers.
`inverted_residual_kernel` has the loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_geometry import pointwise
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.depthwise_rows import core_seconds, pack_filters
from tvm_ext.schedules.inverted_residual_kernel import Chain, emit_block
from tvm_ext.schedules.pointwise_tiles import product_seconds
from tvm_ext.schedules.producer_stage import channel_constants, supports_producer
from tvm_ext.schedules.spatial_pack_weights import group_blocks, pack_panels
from tvm_ext.schedules.tiles import Tile, best_tile, legal_tiles
from tvm_ext.target import CpuTarget

# Beyond this many chunks nothing gets better.
_MOST_TASKS = 32
_STRIP_SECONDS = 2e-7


@register
class InvertedResidual(Algorithm[ConvWorkload]):
    """Blocked input and output; the wide tensors of a strip of rows stay in the task's cache.

    Parameters of the plan: `tile` positions and `blocks` channel vectors in registers, of the last
    convolution, and `wide_tile` and `wide_blocks` of the first; `chunk` rows of the result in a
    task, computed in `strips` equal parts. Neighbouring chunks both compute the wide rows that both
    read, neighbouring strips of a chunk don't.
    """

    name: ClassVar[str] = "inverted_residual"
    workload_type: ClassVar[type] = ConvWorkload
    producers: ClassVar[tuple[tuple[type, ...], ...]] = ((ConvWorkload, ConvWorkload),)

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        chain = Chain.of(workload, 1)
        wide = chain.wide
        if workload.dtype != "float32" or wide.dtype != "float32":
            return refuse(f"dtypes {wide.dtype} and {workload.dtype}; only float32")
        if not pointwise(wide) or wide.groups > 1 or prod(wide.strides) > 1:
            return refuse("a first convolution other than 1x1 without groups and strides")
        if wide.prologue:
            return refuse("a prologue")
        if not pointwise(chain.last):
            return refuse("a last convolution other than 1x1 without strides")
        after = supports_producer(replace(workload, producer=chain.depthwise))
        return channel_constants(wide) and after

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes),)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        chain, rows = Chain.of(workload, 1), workload.out_spatial[0]
        tiles = legal_tiles(prod(workload.out_spatial), group_blocks(chain.last, target), target)
        wide = legal_tiles(chain.wide.spatial[1], group_blocks(chain.wide, target), target)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "wide_tile": tuple(sorted({t.rows for t in wide})),
            "wide_blocks": tuple(sorted({t.columns for t in wide})),
            "chunk": tuple(range(1, rows + 1)),
            "strips": tuple(range(1, rows + 1)),
        }

    def check(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> str:
        problem = super().check(workload, params, target)
        if not problem and params["chunk"] % params["strips"]:
            return f"{self.name}.strips = {params['strips']} doesn't divide {params['chunk']} rows"
        return problem

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        options = [(self.cost(workload, p, target), p["strips"], p["chunk"], p)
                   for p in _candidates(workload, target)]  # fmt: skip
        return min(options, key=lambda option: option[:3])[-1]

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, strips = workload, params["strips"]
        chain = Chain.of(w, params["chunk"] // strips)
        last, wide, rows = chain.last, chain.wide, w.out_spatial[0]
        tasks = -(-rows // params["chunk"])
        narrow = Tile(params["tile"], params["blocks"])
        widen = Tile(params["wide_tile"], params["wide_blocks"])
        share = chain.strip * tasks * strips / rows
        # A row that two chunks read is computed for both, unless it is in the padding.
        computed = tasks * (chain.held + (strips - 1) * min(chain.step, chain.held))
        padding = sum(chain.depthwise.pad_before[:1] + chain.depthwise.pad_after[:1])
        again = max(1.0, (computed - padding) / wide.spatial[0])
        work = product_seconds(last, narrow, chain.strip * last.spatial[1], target) * share
        work += product_seconds(wide, widen, wide.spatial[1], target) * again
        work += core_seconds(chain.depthwise, target) * share
        row = 4 * wide.out_channels
        # All of what a strip computes, and both weights, pass through the L2 cache once a strip.
        held = row * (chain.held * wide.spatial[1] + chain.strip * last.spatial[1])
        weights = wide.weight_bytes + last.weight_bytes
        moved = row * chain.kept * wide.spatial[1] * 2 / target.shared_bandwidth
        work += tasks * strips * (costs.overflow(held, 1, target) + _STRIP_SECONDS)
        work += tasks * (strips - 1) * moved
        work += costs.reread(held + weights, tasks * strips - 1, target)
        work *= w.batch
        return costs.shared_out(work, tasks * w.batch, w.bytes, target)

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        chain = Chain.of(workload, 1)
        return [
            pack_panels(chain.last, params["blocks"], target, weights[0]),
            pack_filters(chain.depthwise, weights[1], target),
            pack_panels(chain.wide, params["wide_blocks"], target, weights[2]),
        ]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: emit_block(workload, params, target))


def _candidates(w: ConvWorkload, target: CpuTarget) -> Iterator[dict[str, Any]]:
    """Parameters worth a look."""
    chain, rows = Chain.of(w, 1), w.out_spatial[0]
    wide = best_tile(chain.wide.spatial[1], group_blocks(chain.wide, target), target)
    for tasks in range(1, min(rows, _MOST_TASKS) + 1):
        chunk = -(-rows // tasks)
        if -(-rows // chunk) != tasks:
            continue
        for strips in cuts.divisors(chunk):
            positions = chunk // strips * w.out_spatial[1]
            tile = best_tile(positions, group_blocks(chain.last, target), target)
            yield {
                "tile": tile.rows, "blocks": tile.columns, "wide_tile": wide.rows,
                "wide_blocks": wide.columns, "chunk": chunk, "strips": strips,
            }  # fmt: skip
