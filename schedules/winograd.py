"""Winograd convolution F(2x2, 3x3) and F(4x4, 3x3) on channel-blocked data.

2.25 and 4 times fewer multiplications than direct convolution, for transforms of the input and of
the output and for weights that grow by 16/9 and 4. `winograd_kernel` has the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_prologue import refuse_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_stage import stage_seconds, supports_pool
from tvm_ext.schedules.producer_rows import producer_seconds
from tvm_ext.schedules.producer_stage import pack_producer, supports_producer
from tvm_ext.schedules.resize import ResizeWorkload
from tvm_ext.schedules.tiles import Tile, best_tile, efficiency, legal_tiles
from tvm_ext.schedules.winograd_kernel import emit_winograd
from tvm_ext.schedules.winograd_matrices import TRANSFORMS, transform_weights
from tvm_ext.schedules.winograd_output import RowCut, fewest_tiles
from tvm_ext.schedules.winograd_widened import (
    OVERLAP,
    pack_widened,
    supports_widened,
    widened_seconds,
    widened_space,
    widened_ways,
)
from tvm_ext.schedules.workload import PoolWorkload
from tvm_ext.target import CpuTarget

# Vector instructions that one tile's transforms cost for each vector of channels, both ways.
_TRANSFORM_CYCLES = {2: (40.0, 24.0), 4: (140.0, 105.0)}
# Cycles to fill and drain a register tile, in which no multiply-add can start.
_TILE_CYCLES = 20.0
# Share of the shared cache's transfers that prefetching doesn't hide.
_EXPOSED = 0.7
# What weights and a task's buffer may count on of a cache that others use too.
_WEIGHTS_SHARE = 0.25
_BUFFER_SHARE = 0.125
# The layer gets so much slower at most for the sake of a smaller working set: what the model
# does not see are the TLB and who else uses the shared cache.
_SLACK = 1.03


class _Winograd(Algorithm[ConvWorkload]):
    """F(m, 3).

    Parameters of the plan: `tile` positions x `blocks` vectors of output channels (a panel) in
    registers; `rows` of tiles whose transformed input stays in cache while all panels pass;
    `pieces` parts of the output channels that threads share.

    A 1x1 convolution that makes the input adds `wide_tile` and `wide_blocks`, its own register
    tile, and `strips`, how many times `rows` a task takes, one after the other.
    """

    m: ClassVar[int]
    workload_type: ClassVar[type] = ConvWorkload
    producers: ClassVar[tuple[tuple[type, ...], ...]] = (
        (), (ConvWorkload,), (PoolWorkload,), (ResizeWorkload,),
    )  # fmt: skip

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        for what, value, allowed in (
            ("kernel", w.kernel, (3, 3)),
            ("strides", w.strides, (1, 1)),
            ("dilation", w.dilation, (1, 1)),
            ("groups", w.groups, 1),
        ):
            if value != allowed:
                return refuse(f"{what} {value}; only {allowed}")
        made = supports_widened(w) if _is_widened(w) else supports_producer(w)
        return refuse_prologue(w) and supports_pool(w) and made

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes),)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        rows, columns = self._tiles(workload)
        blocks = -(-workload.out_channels // target.lanes)
        tiles = legal_tiles(rows * columns, blocks, target)
        space: dict[str, tuple[Any, ...]] = {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "rows": tuple(range(fewest_tiles(self.m, workload), rows + 1)),
            "pieces": tuple(range(1, blocks + 1)),
        }
        if _is_widened(workload):
            space |= widened_space(workload, rows, target) | {"pieces": (1,)}
        return space

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        rows, columns = self._tiles(w)
        blocks = -(-w.out_channels // target.lanes)
        options = []
        fewest = fewest_tiles(self.m, w)
        for high in sorted({max(fewest, -(-rows // tasks)) for tasks in range(1, rows + 1)}):
            tile = best_tile(high * columns, blocks, target)
            for pieces in {1, min(target.cores, -(-blocks // tile.columns))}:
                params = {
                    "tile": tile.rows, "blocks": tile.columns, "rows": high, "pieces": pieces,
                }  # fmt: skip
                ways = [params]
                if _is_widened(w):
                    ways = [params | way for way in widened_ways(w, rows, high, target)]
                    ways = ways if pieces == 1 else []
                options += [(self.cost(w, way, target), way) for way in ways]
        enough = _SLACK * min(cost for cost, _ in options)
        return min(
            (params for cost, params in options if cost <= enough),
            key=lambda params: (params["pieces"], params["rows"]),
        )

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, v, a = workload, target.lanes, self.m + 2
        _, columns = self._tiles(w)
        blocks, in_blocks = -(-w.out_channels // v), -(-w.in_channels // v)
        tile, pieces = Tile(params["tile"], params["blocks"]), params["pieces"]
        task_tiles = params["rows"] * columns
        # The last rows may be fewer than the others; what counts is their sum.
        cut = RowCut(self.m, w, params["rows"])
        tasks = cut.all_tiles / params["rows"] * w.batch
        jobs = -(-cut.height // cut.share) * w.batch * pieces
        strips = params.get("strips", 1)
        if strips > 1:
            jobs = -(-cut.height // (cut.share * strips)) * w.batch
            tasks = jobs * strips
        into, back = _TRANSFORM_CYCLES[self.m]
        cycle = 4 * v / target.fma_peak  # two FMA instructions of 2 x lanes operations
        panels = -(-blocks // tile.columns)

        share = efficiency(tile, task_tiles, blocks, target)
        multiply = 2 * a * a * task_tiles * w.in_channels * blocks * v / share / target.fma_peak
        multiply += a * a * -(-task_tiles // tile.rows) * panels * _TILE_CYCLES * cycle
        transforms = task_tiles * cycle * (pieces * into * in_blocks + back * blocks)
        # What doesn't stay in the L2 cache between the transforms comes from the shared one, where
        # a large buffer isn't kept either.
        frequencies = 4 * a * a * task_tiles * w.in_channels
        missing = min(1.0, max(0.0, 2 * frequencies / target.l2 - 1))
        spilled = missing * frequencies * (panels + pieces)
        spilled /= _level(frequencies, _BUFFER_SHARE, target)
        work = (multiply + transforms + _EXPOSED * spilled) * tasks + stage_seconds(w, target)
        # Tasks that are neighbours both compute the rows that both read, as all pieces do.
        neighbours = jobs / (pieces * w.batch) - 1
        again = 1 + OVERLAP * neighbours / w.spatial[0]
        work += pieces * w.batch * again * self._made_seconds(w, params, target)
        compute = work * -(-jobs // target.cores) / jobs
        # Every strip after the first reads the weights again; the cores share what brings them.
        weights = 4 * a * a * w.in_channels * blocks * v
        weights += w.producer.weight_bytes if _is_widened(w) else 0
        again = max(0.0, weights - 0.5 * target.l2) / _level(weights, _WEIGHTS_SHARE, target)
        compute += _EXPOSED * again * (jobs * strips / pieces - 1)
        # A network's weights come from memory, what its layers pass on mostly from the cache.
        traffic = weights + 2 * (prod(w.source_shape) + prod(w.out_shape))
        return costs.overlapped(compute, traffic / target.bandwidth(target.cores))

    def _made_seconds(self, w: ConvWorkload, params: Params, target: CpuTarget) -> float:
        """Seconds of one core for what makes the input of one image, all of it once."""
        if _is_widened(w):
            return widened_seconds(w, params, target)
        return producer_seconds(w.producer, target) / w.batch

    def tolerance(self, workload: ConvWorkload, params: Params) -> float:
        return TRANSFORMS[self.m].tolerance

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, v, width, a = workload, target.lanes, params["blocks"], self.m + 2
        blocks = -(-w.out_channels // v)
        data = transform_weights(weights[0], self.m).astype("float32")
        data = np.pad(data, [(0, 0), (0, 0), (0, blocks * v - w.out_channels), (0, 0)])
        data = data.reshape(a * a, blocks, v, w.in_channels)
        panels = cuts.cut_panels(data, 1, width, at=0)
        # (panel, frequency, block, lane, channel) -> (panel, frequency, channel, block, lane)
        packed = np.ascontiguousarray(panels.transpose(0, 1, 4, 2, 3))
        if _is_widened(w):
            return [packed, *pack_widened(w, params, target, weights[1:])]
        return [packed, *pack_producer(w, target, weights[1:])] if w.producer else [packed]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: emit_winograd(self.m, workload, params, target))

    def _tiles(self, w: ConvWorkload) -> tuple[int, int]:
        rows, columns = (-(-n // self.m) for n in w.conv_spatial)
        return rows, columns


def _is_widened(w: ConvWorkload) -> bool:
    """Whether the input is made by a convolution, strip by strip."""
    return isinstance(w.producer, ConvWorkload)


def _level(nbytes: float, share: float, target: CpuTarget) -> float:
    """Bytes a second at which something that is read again and again comes."""
    return target.shared_bandwidth if nbytes <= share * target.l3 else target.memory_bandwidth


@register
class Winograd2(_Winograd):
    """F(2x2, 3x3): small maps, where F(4x4) has too few tiles for its weights."""

    name: ClassVar[str] = "winograd_2x2"
    m: ClassVar[int] = 2


@register
class Winograd4(_Winograd):
    """F(4x4, 3x3)."""

    name: ClassVar[str] = "winograd_4x4"
    m: ClassVar[int] = 4
