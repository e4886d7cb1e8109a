"""Direct convolution on the model's own layout: takes every convolution there is.

Vectors hold neighbouring output columns of one channel. It is the choice when no algorithm with
blocked channels applies: any number of groups, of channels a group and of dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import conv_columns as cc
from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.column_stage import stage_columns
from tvm_ext.schedules.conv_geometry import lifted
from tvm_ext.schedules.conv_prologue import refuse_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands, lifted_epilogue
from tvm_ext.schedules.pool_stage import (
    PooledRows,
    first_row,
    repetition,
    rows_needed,
    rows_pooled,
    stage_seconds,
    supports_pool,
)
from tvm_ext.target import CpuTarget

_MOST_CHANNELS = 12


@register
class ConvDirect(Algorithm[ConvWorkload]):
    """Plain input and output, one scalar weight at a time.

    Parameters of the plan: `channels` outputs, `high` rows and `vectors` of columns in registers;
    `chunk` rows of the first dimension whose input a task reads; `pieces` parts of a group's
    output channels that threads share; `stage` copies the task's input, padded.
    """

    name: ClassVar[str] = "conv_direct"
    workload_type: ClassVar[type] = ConvWorkload
    stores_shuffled: ClassVar[bool] = True

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        if workload.dtype != "float32":
            return refuse(f"dtype {workload.dtype}; only float32")
        if workload.pool and workload.shuffle > 1:
            return refuse("a pool stage of shuffled channels")
        return refuse_prologue(workload) and supports_pool(workload)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        g = cc.ColumnGeometry.of(workload, target.lanes)
        per_group = workload.out_channels // workload.groups
        vectors = g.out[-1] // cc.vector_lanes(g.out[-1], target)
        return {
            "channels": tuple(range(1, min(per_group, _MOST_CHANNELS) + 1)),
            "high": tuple(range(1, min(4, g.out[-2]) + 1)),
            "vectors": tuple(range(1, min(vectors, target.registers - 2) + 1)),
            "chunk": tuple(range(1, _rows(workload, g) + 1)),
            "pieces": tuple(range(1, per_group + 1)),
            "stage": (True,) if g.must_stage else (False, True),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, g = workload, cc.ColumnGeometry.of(workload, target.lanes)
        per_group = w.out_channels // w.groups
        choices = range(1, min(per_group, _MOST_CHANNELS) + 1)
        tile = cc.best_column_tile(choices, per_group, g.out[-2], g.out[-1], target)
        chunk = default_chunk(w, g, tile, target)
        tasks = w.batch * w.groups * -(-_rows(w, g) // chunk)
        panels = -(-per_group // tile.channels)
        pieces = min(panels, target.cores) if tasks < target.cores else 1
        return {
            "channels": tile.channels,
            "high": min(tile.high, rows_needed(w, chunk) if len(g.out) == 2 else 4),
            "vectors": tile.vectors, "chunk": chunk, "pieces": pieces, "stage": g.must_stage,
        }  # fmt: skip

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g = workload, cc.ColumnGeometry.of(workload, target.lanes)
        return columns_cost(w, g, _tile(g, params, target), params, target)

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, size = workload, params["channels"]
        per_group, kernel = w.out_channels // w.groups, lifted(w).kernel
        if prod(kernel) == 1:
            kernel = kernel[: len(cc.ColumnGeometry.of(w, target.lanes).kernel)]
        data = weights[0].reshape(w.groups, per_group, w.in_channels // w.groups, *kernel)
        panels = cuts.cut_panels(data, 1, size, at=1)
        return [np.ascontiguousarray(np.moveaxis(panels, 2, -1))]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target))


def _rows(w: ConvWorkload, g: cc.ColumnGeometry) -> int:
    """What tasks share: rows of the output in the first dimension."""
    return w.pool.out_spatial[0] if w.pool else g.out[0]


def default_chunk(
    w: ConvWorkload, g: cc.ColumnGeometry, tile: cc.ColumnTile, target: CpuTarget
) -> int:
    """Rows of the first dimension whose input takes its share of the L2 cache, in even chunks."""
    extent, others = _rows(w, g), w.batch * w.groups
    row = 4 * w.in_channels // w.groups * prod(g.staged[1:])
    if w.pool:
        # The rows of a panel's channels that wait for being pooled are there, too.
        row += 4 * tile.channels * g.out[-1] // g.stride[0]
    fit = int(costs.L2_SHARE * target.l2 / row) // g.stride[0] - (g.kernel[0] - 1)
    if w.pool:
        fit = rows_pooled(w, max(fit, w.pool.kernel[0]))
    else:
        fit = max(1, fit, tile.high if len(g.out) == 2 else 1)
    chunks = -(-extent // min(extent, fit))
    while chunks * others % target.cores and chunks < extent and extent >= 4 * target.cores:
        chunks += 1
    return -(-extent // chunks)


def columns_cost(
    w: ConvWorkload, g: cc.ColumnGeometry, tile: cc.ColumnTile, params: Params, target: CpuTarget
) -> float:
    """Seconds of a convolution in vectors of columns, on all cores."""
    per_group = w.out_channels // w.groups
    steps = w.batch * w.groups * prod(g.out[:-2]) * w.in_channels // w.groups * prod(g.kernel)
    cycles = steps * cc.tile_cycles(tile, per_group, g.out[-2], g.out[-1], target)
    # Two vectors of multiply-adds a cycle are the peak.
    compute = cycles * 4 * target.lanes / (target.fma_peak * target.cores)
    rows = rows_needed(w, params["chunk"])
    compute *= repetition(w, params["chunk"])
    compute += stage_seconds(w, target, blocked=False) / target.cores
    compute += cc.overflow(w, g, rows, -(-per_group // tile.channels), target)
    copied = 8 * w.batch * w.in_channels * prod(g.staged) if params["stage"] else 0
    return compute + 0.5 * (w.bytes + copied) / target.memory_bandwidth


def _tile(g: cc.ColumnGeometry, params: Params, target: CpuTarget) -> cc.ColumnTile:
    lanes = cc.vector_lanes(g.out[-1], target)
    return cc.ColumnTile(params["channels"], params["high"], params["vectors"], lanes)


def _emit(w: ConvWorkload, params: Params, target: CpuTarget) -> None:
    g = cc.ColumnGeometry.of(w, target.lanes)
    tile = _tile(g, params, target)
    inputs, outputs = w.in_channels // w.groups, w.out_channels // w.groups
    panels = -(-outputs // tile.channels)
    data = emit.argument("data", w.in_shape)
    weight = emit.argument("weight", (w.groups, panels, inputs, *g.kernel, tile.channels))
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    data = emit.view(data, (w.batch, w.in_channels, *g.spatial))
    if not w.pool:
        out = emit.view(out, (w.batch, w.out_channels, *g.out))
    epilogue, operands = lifted_epilogue(w.epilogue, operands, g.out, 0)

    chunk = params["chunk"]
    rows_computed = rows_needed(w, chunk)
    high = min(tile.high, rows_computed) if len(g.out) == 2 else tile.high
    tile = cc.ColumnTile(tile.channels, high, tile.vectors, tile.lanes)
    piece_panels = -(-panels // params["pieces"])
    pieces = -(-panels // piece_panels)

    def task(n: Any, group: Any, first: Any, piece: Any) -> None:
        start = first_row(w, first, chunk) if w.pool else first
        copy = None
        if params["stage"]:
            copy = stage_columns(w, g, 1, data, n, group, start, rows_computed)
        kept = PooledRows(w, tile.lanes, 0, tile.channels, start, rows_computed) if w.pool else None

        def panel_at(slot: Any) -> None:
            panel = piece * piece_panels + slot if pieces > 1 else slot
            panel = tirx.min(panel, panels - 1) if panels % piece_panels else panel
            channel0 = group * outputs + cuts.panel_start(panel, tile.channels, outputs)
            cc.emit_cover(
                (rows_computed, *g.out[1:]),
                (*(1,) * (len(g.out) - 2), tile.high, tile.width),
                lambda *at: tile_at(panel, channel0, at),
            )
            if kept is not None:
                with emit.nest((tile.channels, chunk)) as (r, i):
                    kept.pool(
                        r,
                        first + i,
                        lambda x, _, value: T.buffer_store(
                            out, value, [n, channel0 + r, first + i, x]
                        ),
                    )

        def tile_at(panel: Any, channel0: Any, at: Sequence[Any]) -> None:
            *rows, column = at

            def source(ci: Any, offsets: Any, h: int, x: Any, offset: Any) -> tirx.Expr:
                at_rows = [*rows[:-1], rows[-1] + h]
                where = [r * s + o for r, s, o in zip(at_rows, g.stride, offsets, strict=False)]
                if copy is not None:
                    parts = g.stride[-1]
                    return copy[(*ci, *where, 0, offset % parts, column + x + offset // parts)]
                where[0] = where[0] + start * g.stride[0]
                return data[(n, group * inputs + ci[0], *where, column + x + offset)]

            def store(r: int, h: int, x: Any, value: tirx.Expr) -> None:
                at_rows = [*rows[:-1], rows[-1] + h]
                index = [n, channel0 + r, start + at_rows[0], *at_rows[1:], column + x]
                value = apply_epilogue(epilogue, operands, 0, index, [value])
                if kept is None:
                    T.buffer_store(out, value, [n, w.stored_channel(index[1]), *index[2:]])
                else:
                    kept.put(r, index[2], index[3], value)

            cc.emit_tile(
                tile, (inputs,), g.taps(),
                lambda ci, taps, r: weight[(group, panel, *ci, *taps, r)], source, store,
            )  # fmt: skip

        with emit.loop(piece_panels) as slot:
            panel_at(slot)

    extent = _rows(w, g)
    chunks = -(-extent // chunk)
    with emit.parallel_tasks(w.batch, w.groups, chunks, pieces) as (n, group, c, piece):
        task(n, group, cuts.panel_start(c, chunk, extent), piece)
