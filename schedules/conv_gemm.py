"""Convolution as a matrix product: im2col in cache, then the tile of `matmul`.

A task gathers the input that a chunk of output positions reads, one row a position, into a buffer
that stays in the L2 cache (the im2col matrix of the whole layer is never in memory). All panels of
weights then pass over it. It costs a copy, and makes every convolution look the same: rows of
scalars that are read in order, whatever the kernel, the stride and the dilation are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit, gemm, gemm_cuts
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_prologue import refuse_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.pool_stage import refuse_pool
from tvm_ext.schedules.tiles import Tile, efficiency
from tvm_ext.schedules.window import unflatten
from tvm_ext.target import CpuTarget

# Cycles to copy one element: blocked input by vectors, plain input one by one.
_COPY_CYCLES = {False: 1.5, True: 0.5}


@register
class ConvGemm(Algorithm[ConvWorkload]):
    """Blocked or plain input, blocked output.

    Parameters of the plan: `tile` positions and `blocks` vectors of channels in registers;
    `chunk` positions whose im2col rows a task holds; `pieces` parts of the output channels that
    threads share.
    """

    name: ClassVar[str] = "conv_gemm"
    workload_type: ClassVar[type] = ConvWorkload

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if w.groups > 1:
            return refuse(f"{w.groups} groups; only 1")
        return refuse_prologue(w) and refuse_pool(w)

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes), (0, target.lanes))

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        positions, columns = prod(workload.out_spatial), _columns(workload, target)
        tiles = gemm_cuts.panel_tiles(positions, columns, target)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunk": tuple(range(1, positions + 1)),
            "pieces": tuple(range(1, columns // target.lanes + 1)),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, positions, columns = workload, prod(workload.out_spatial), _columns(workload, target)
        tile = gemm_cuts.best_panel_tile(positions, columns, target)
        fit = max(1, int(costs.L2_SHARE * target.l2 / (4 * _depth(w))) // tile.rows) * tile.rows
        chunks = -(-positions // fit)
        while chunks * w.batch % target.cores and positions >= 2 * tile.rows * (chunks + 1):
            chunks += 1
        even = -(-positions // chunks)
        chunk = min(positions, -(-even // tile.rows) * tile.rows)
        tasks = w.batch * -(-positions // chunk)
        pieces = 1
        if tasks < target.cores:
            pieces = min(-(-columns // (tile.columns * target.lanes)), target.cores)
        return {"tile": tile.rows, "blocks": tile.columns, "chunk": chunk, "pieces": pieces}

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, positions = workload, prod(workload.out_spatial)
        vectors = _columns(w, target) // target.lanes
        share = efficiency(Tile(params["tile"], params["blocks"]), positions, vectors, target)
        useful = w.out_channels / (vectors * target.lanes)
        chunks = -(-positions // params["chunk"])
        tasks = w.batch * chunks * params["pieces"]
        blocked = w.in_channels % target.lanes == 0
        copied = w.batch * positions * _depth(w) * params["pieces"] * _COPY_CYCLES[blocked]
        # Copying takes the time of so many operations at the peak.
        work = 2 * w.macs / (share * useful) + copied * 4 * target.lanes
        traffic = w.bytes + 0.25 * w.weight_bytes * (chunks * w.batch - 1)
        return work / (target.fma_peak * costs.busy_cores(tasks, target)) + (
            0.5 * traffic / target.memory_bandwidth
        )

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, columns = workload, _columns(workload, target)
        # Rows of the im2col matrix are (*kernel, channel).
        data = np.moveaxis(weights[0], 1, -1).reshape(w.out_channels, _depth(w)).T
        data = np.pad(data, [(0, 0), (0, columns - w.out_channels)])
        return [gemm.pack_panels(data, params["blocks"], target.lanes)]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target, layout))


def _columns(w: ConvWorkload, target: CpuTarget) -> int:
    """Output channels, whole vectors of them."""
    return -(-w.out_channels // target.lanes) * target.lanes


def _depth(w: ConvWorkload) -> int:
    """Elements of an im2col row."""
    return w.in_channels * prod(w.kernel)


def _emit(w: ConvWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]) -> None:
    block_in, block_out = layout
    v, chunk, positions = target.lanes, params["chunk"], prod(w.out_spatial)
    b = gemm.Blocking(
        chunk, _columns(w, target), _depth(w), v, params["blocks"], params["tile"],
        pieces=params["pieces"],
    )  # fmt: skip
    data = emit.argument("data", stored_shape(w.in_shape, block_in))
    weight = emit.argument("weight", (b.panels, b.k, b.blocks, v))
    operands = declare_operands(w.epilogue, block_out)
    out = emit.argument("out", stored_shape(w.out_shape, block_out))

    with emit.parallel_tasks(w.batch, -(-positions // chunk), b.tasks[1]) as (n, c, piece):
        first = cuts.panel_start(c, chunk, positions)
        rows = _gather(w, data, block_in, n, first, chunk)

        def store(row: Any, column0: Any, c: Any, lane: Any, value: tirx.Expr) -> None:
            # A panel starts at a whole block: columns are padded to a multiple of lanes.
            place = unflatten(first + row, w.out_spatial)
            index = [n, column0 // v + c, *place, lane]
            value = apply_epilogue(w.epilogue, operands, block_out, index, [value])
            T.buffer_store(out, value, index)

        gemm.emit_task(
            b, 0, piece,
            lambda row, step: rows[row, step],
            lambda panel, base: lambda step, c, i: weight[panel, step, c, i],
            store,
        )  # fmt: skip


def _gather(w: ConvWorkload, data: Any, block: int, n: Any, first: Any, count: int) -> Any:
    """The im2col rows (*kernel, channel) of positions [first, first + count)."""
    # The rows of a tile spread over all sets of the L1 cache.
    rows = emit.spread_rows(count, _depth(w))
    # Whole blocks of channels are copied as vectors; what is left over one by one.
    whole = w.in_channels // block if block else 0
    zero = tirx.const(0.0, "float32")
    with emit.loop(count) as r, emit.nest(w.kernel) as tap:
        place = unflatten(first + r, w.out_spatial)
        where = [
            p * s + t * d - before
            for p, s, t, d, before in zip(
                place, w.strides, tap, w.dilation, w.pad_before, strict=True
            )
        ]
        base = emit.flat_index(tap, w.kernel) * w.in_channels

        def copy(fill: bool) -> None:
            if whole:
                with emit.loop(whole) as co, T.vectorized(0, block) as i:
                    value = zero if fill else data[(n, co, *where, i)]
                    T.buffer_store(rows, value, [r, base + co * block + i])
            with emit.loop(w.in_channels - whole * block) as i:
                if block:
                    value = zero if fill else data[(n, whole, *where, i)]
                else:
                    value = zero if fill else data[(n, i, *where)]
                T.buffer_store(rows, value, [r, base + whole * block + i])

        bounds = []
        for x, extent, before, after in zip(
            where, w.spatial, w.pad_before, w.pad_after, strict=True
        ):
            bounds += [x >= 0] if before else []
            bounds += [x < extent] if after else []
        if not bounds:
            copy(False)
        else:
            with T.If(tirx.all(*bounds)):
                with T.Then():
                    copy(False)
                with T.Else():
                    copy(True)
    return rows
