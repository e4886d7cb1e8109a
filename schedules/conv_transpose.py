"""Transposed convolution as a gather: every output is computed once, from the inputs it needs.

The outputs of one phase of the strides are an ordinary convolution of stride 1 with a part of the
taps (see `transposed_geometry`), so no multiplication with an inserted zero is ever done.
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
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_workload import ConvTransposeWorkload
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands, lifted_epilogue
from tvm_ext.schedules.row_copy import copy_row, row_bounds
from tvm_ext.schedules.transposed_geometry import Phase, TransposedGeometry
from tvm_ext.target import CpuTarget

_MOST_CHANNELS = 12


@register
class ConvTranspose(Algorithm[ConvTransposeWorkload]):
    """Plain input and output, in vectors of the columns of one phase.

    Parameters of the plan: `channels` outputs, `high` rows and `vectors` of columns in registers;
    `chunk` output rows of each phase, in the first dimension, that a task computes.
    """

    name: ClassVar[str] = "conv_transpose"
    workload_type: ClassVar[type] = ConvTransposeWorkload

    def supports(self, workload: ConvTransposeWorkload, target: CpuTarget) -> Support:
        if workload.dtype != "float32":
            return refuse(f"dtype {workload.dtype}; only float32")
        return YES

    def space(
        self, workload: ConvTransposeWorkload, target: CpuTarget
    ) -> dict[str, tuple[Any, ...]]:
        g = TransposedGeometry.of(workload)
        per_group = workload.out_channels // workload.groups
        vectors = g.most[-1] // cc.vector_lanes(g.most[-1], target)
        return {
            "channels": tuple(range(1, min(per_group, _MOST_CHANNELS) + 1)),
            "high": tuple(range(1, min(4, g.most[-2]) + 1)),
            "vectors": tuple(range(1, min(vectors, target.registers - 2) + 1)),
            "chunk": tuple(range(1, g.most[0] + 1)),
        }

    def default(self, workload: ConvTransposeWorkload, target: CpuTarget) -> dict[str, Any]:
        w, g = workload, TransposedGeometry.of(workload)
        per_group, rows = w.out_channels // w.groups, g.most[0]
        choices = range(1, min(per_group, _MOST_CHANNELS) + 1)
        tile = cc.best_column_tile(choices, per_group, g.most[-2], g.most[-1], target)
        row = 4 * w.in_channels // w.groups * prod(g.spatial[1:])
        chunks = -(-rows // max(1, min(rows, int(costs.L2_SHARE * target.l2 / row))))
        others = w.batch * w.groups
        while chunks * others % target.cores and chunks < rows:
            chunks += 1
        return {
            "channels": tile.channels, "high": tile.high, "vectors": tile.vectors,
            "chunk": -(-rows // chunks),
        }  # fmt: skip

    def cost(self, workload: ConvTransposeWorkload, params: Params, target: CpuTarget) -> float:
        w, g = workload, TransposedGeometry.of(workload)
        inputs, outputs = w.in_channels // w.groups, w.out_channels // w.groups
        cycles = 0.0
        for phase in g.phases():
            tile = _tile(phase, params, params["chunk"], target)
            *outer, rows, columns = phase.extents
            steps = inputs * prod(t.count for t in phase.taps) * prod(outer)
            cycles += steps * cc.tile_cycles(tile, outputs, rows, columns, target)
        compute = w.batch * w.groups * cycles * 4 * target.lanes / target.fma_peak / target.cores
        return compute + 0.5 * w.bytes / target.memory_bandwidth

    def pack(
        self,
        workload: ConvTransposeWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, size = workload, params["channels"]
        per_group, kernel = w.out_channels // w.groups, TransposedGeometry.of(w).kernel
        data = weights[0].reshape(w.groups, w.in_channels // w.groups, per_group, *kernel)
        panels = cuts.cut_panels(data, 2, size, at=1)
        return [np.ascontiguousarray(np.moveaxis(panels, 3, -1))]

    def kernel(
        self,
        workload: ConvTransposeWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target))


def _tile(phase: Phase, params: Params, rows: int, target: CpuTarget) -> cc.ColumnTile:
    """The tile of a phase, of which a task has `rows` in the first dimension."""
    available = min(rows, phase.extents[-2]) if len(phase.extents) == 2 else phase.extents[-2]
    lanes = cc.vector_lanes(phase.extents[-1], target)
    vectors = min(params["vectors"], phase.extents[-1] // lanes)
    return cc.ColumnTile(params["channels"], min(params["high"], available), vectors, lanes)


def _emit(w: ConvTransposeWorkload, params: Params, target: CpuTarget) -> None:
    g, size, chunk = TransposedGeometry.of(w), params["channels"], params["chunk"]
    inputs, outputs = w.in_channels // w.groups, w.out_channels // w.groups
    panels = -(-outputs // size)
    data = emit.argument("data", w.in_shape)
    weight = emit.argument("weight", (w.groups, panels, inputs, *g.kernel, size))
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    data = emit.view(data, (w.batch, w.in_channels, *g.spatial))
    out = emit.view(out, (w.batch, w.out_channels, *g.out))
    epilogue, operands = lifted_epilogue(w.epilogue, operands, g.out, 0)
    phases = list(g.phases())
    fewest = min(phase.extents[0] for phase in phases)

    def compute(phase: Phase, n: Any, group: Any, c: Any, begin: Any, copy: Any) -> None:
        count = min(chunk, phase.extents[0])
        tile = _tile(phase, params, count, target)
        first = _first(g, c, count, phase.extents[0])

        def tile_at(panel: Any, *at: Any) -> None:
            *rows, column = at

            def source(ci: Any, offsets: Any, h: int, x: Any, offset: Any) -> tirx.Expr:
                lines = [first - begin + rows[0], *rows[1:]]
                lines[-1] = lines[-1] + h
                where = [r + o + low for r, o, low in zip(lines, offsets, g.low, strict=False)]
                return copy[(*ci, *where, column + x + offset + g.low[-1])]

            def store(r: int, h: int, x: Any, value: tirx.Expr) -> None:
                lines = [first + rows[0], *rows[1:]]
                lines[-1] = lines[-1] + h
                channel = group * outputs + cuts.panel_start(panel, size, outputs) + r
                place = [
                    f + s * j
                    for f, s, j in zip(phase.first, g.stride, [*lines, column + x], strict=True)
                ]
                index = [n, channel, *place]
                value = apply_epilogue(epilogue, operands, 0, index, [value])
                T.buffer_store(out, value, index)

            cc.emit_tile(
                tile, (0,) if phase.empty else (inputs,), phase.taps,
                lambda ci, taps, r: weight[(group, panel, *ci, *taps, r)], source, store,
            )  # fmt: skip

        sizes = (1, *(1,) * (len(g.out) - 2), tile.high, tile.width)
        cc.emit_cover((panels, count, *phase.extents[1:]), sizes, tile_at)

    with emit.parallel_tasks(w.batch, w.groups, -(-g.most[0] // chunk)) as (n, group, c):
        # A phase with one row less starts its last, overlapping chunk one row earlier.
        begin = _first(g, c, chunk, fewest) if chunk < g.most[0] else 0
        copy = _stage(w, g, data, n, group, begin, chunk + g.most[0] - fewest)
        for phase in phases:
            compute(phase, n, group, c, begin, copy)


def _first(g: TransposedGeometry, chunk: Any, count: int, extent: int) -> Any:
    """First row of a task in a phase of `extent` rows, which may be fewer than the tasks cover."""
    if extent == g.most[0]:
        return cuts.panel_start(chunk, count, extent)
    return tirx.min(chunk * count, extent - count) if count < extent else 0


def _stage(
    w: ConvTransposeWorkload,
    g: TransposedGeometry,
    data: Any,
    n: Any,
    group: Any,
    begin: Any,
    count: int,
) -> Any:
    """A copy of the input rows that `count` outputs of a phase read, with zeros around it."""
    inputs = w.in_channels // w.groups
    staged = [m + low + reach for m, low, reach in zip(g.most, g.low, g.reach, strict=True)]
    *outer, length = staged
    outer[0] += min(count, g.most[0]) - g.most[0]
    copy = emit.workspace((inputs, *outer, length))
    with emit.loop(inputs) as ci, emit.nest(outer) as at:
        where = [at[0] + begin - g.low[0]]
        where += [x - low for x, low in zip(at[1:], g.low[1:], strict=False)]
        copy_row(
            g.spatial[-1], g.low[-1], length, row_bounds(where, g.spatial, g.low, staged),
            lambda x, _: data[(n, group * inputs + ci, *where, x)],
            lambda p, x, _, value: T.buffer_store(copy, value, [ci, *at, x]),
        )  # fmt: skip
    return copy
