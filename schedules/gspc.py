"""Grouped spatial pack convolution (GSPC): time falls with the number of groups.

Algorithm 3 of chapter 5, "Grouped Spatial Pack Convolutions", of the across-stack thesis on
efficient deep learning. With K = C_out / g and C = C_in / g channels a group and tiles T_O, T_I:

1. kernels are reshaped ahead of time: (C_out, C, Kh, Kw) -> (g, K/T_O, C/T_I, Kh, Kw, T_I, T_O);
2. padded inputs: (N, C_in, H, W) -> (g, N, C/T_I, H, T_I, W);
3. outputs accumulate as (g, N, K/T_O, Ho, Wo, T_O);
4. and are un-reshaped into (N, C_out, Ho, Wo).

Stages 2 to 4 are interleaved: a task holds the reshaped input of one image, group and chunk of
rows in its cache, and no stage of it ever goes to memory. Vectors run over T_O as in the thesis, or
over W, where T_O scalars of weights meet vectors of columns and stage 4 is free: the better choice
wherever a row holds a vector, and the only one when a group has few output channels.
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
from tvm_ext.schedules.conv_direct import default_chunk
from tvm_ext.schedules.conv_prologue import refuse_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands, lifted_epilogue
from tvm_ext.schedules.pool_stage import refuse_pool
from tvm_ext.schedules.tiles import Tile, cycles_a_step, registers_needed
from tvm_ext.target import CpuTarget

_MOST_T_I = 32
_MOST_POSITIONS = 14
_MOST_VECTORS = 5
# Registers that a tile of channels leaves free: neighbouring taps read the same columns, and LLVM
# keeps their broadcasts from one tap to the next, by spilling accumulators where it must.
_SPARE_REGISTERS = 3
# Cycles to take one element of the output out of a tile of channels.
_UNPACK_CYCLES = 2.0
# Cycles in which a vector comes from the L2 cache.
_L2_CYCLES = 1.6
# Share of the shared cache's bandwidth for what nobody has asked for ahead.
_NOT_ASKED_FOR = 0.33


@register
class Gspc(Algorithm[ConvWorkload]):
    """Plain input and output, the weights of each group in tiles of T_I x T_O channels.

    Parameters of the plan: `t_i`, `t_o` channels a tile (equation 5.1: 0 < T_O <= K, 0 < T_I <= C,
    here divisors); `over` what a vector holds, "channels" or "columns"; `high` rows and `width`
    vectors of columns (or positions, over channels) of the register tile; `chunk` rows of a task;
    `unroll_kw` makes the last kernel dimension part of the loop body.
    """

    name: ClassVar[str] = "gspc"
    workload_type: ClassVar[type] = ConvWorkload
    stores_shuffled: ClassVar[bool] = True

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        if workload.dtype != "float32":
            return refuse(f"dtype {workload.dtype}; only float32")
        return refuse_prologue(workload) and refuse_pool(workload)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        w, g = workload, cc.ColumnGeometry.of(workload, target.lanes)
        return {
            "t_i": cuts.divisors(w.in_channels // w.groups),
            "t_o": cuts.divisors(w.out_channels // w.groups),
            "over": ("channels", "columns"),
            "high": tuple(range(1, min(4, g.out[-2]) + 1)),
            "width": tuple(range(1, min(g.out[-1], _MOST_POSITIONS) + 1)),
            "chunk": tuple(range(1, g.out[0] + 1)),
            "unroll_kw": (False, True),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, g = workload, cc.ColumnGeometry.of(workload, target.lanes)
        outputs = w.out_channels // w.groups
        t_i = cuts.divisors(w.in_channels // w.groups, _MOST_T_I)[-1]
        tile = cc.best_column_tile(cuts.divisors(outputs), outputs, g.out[-2], g.out[-1], target)
        chunk = default_chunk(w, g, tile, target)
        common = {"t_i": t_i, "chunk": chunk, "unroll_kw": True}
        columns = {
            **common, "t_o": tile.channels, "over": "columns",
            "high": min(tile.high, chunk) if len(g.out) == 2 else tile.high, "width": tile.vectors,
        }  # fmt: skip
        channels = [
            {**common, "t_o": t_o, "over": "channels", "high": 1, "width": width}
            for t_o in cuts.divisors(outputs, _MOST_VECTORS * target.lanes)
            for width in range(1, min(g.out[-1], _MOST_POSITIONS) + 1)
            if registers_needed(Tile(width, _vectors(t_o, target)[0]), target) + _SPARE_REGISTERS
            <= target.registers
        ]
        return min([columns, *channels], key=lambda p: self.cost(w, p, target))

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g = workload, cc.ColumnGeometry.of(workload, target.lanes)
        outputs, (rows, columns) = w.out_channels // w.groups, g.out[-2:]
        steps = prod(g.kernel) * (w.in_channels // w.groups)
        images = w.batch * w.groups * prod(g.out[:-2])
        if params["over"] == "columns":
            tile = _column_tile(g, params, target)
            cycles = images * steps * cc.tile_cycles(tile, outputs, rows, columns, target)
        else:
            t_o, width = params["t_o"], params["width"]
            vectors, lanes = _vectors(t_o, target)
            step = cycles_a_step(Tile(width, vectors))
            if 4 * steps * vectors * lanes > target.l1d:
                # The tile's weights pass once for each `width` positions.
                step = max(step, _L2_CYCLES * vectors)
            if 4 * steps * vectors * lanes > costs.L2_SHARE * target.l2:
                cycle = 4 * target.lanes / target.fma_peak
                stream = target.shared_bandwidth * _NOT_ASKED_FOR
                step = max(step, 4 * vectors * lanes / stream / cycle)
            tiles = outputs // t_o * rows * -(-columns // width)
            cycles = images * (steps * step * tiles + _UNPACK_CYCLES * outputs * rows * columns)
        compute = cycles * 4 * target.lanes / (target.fma_peak * target.cores)
        compute += cc.overflow(w, g, params["chunk"], outputs // params["t_o"], target)
        traffic = w.bytes + 8 * w.batch * w.in_channels * prod(g.staged)
        return compute + 0.5 * traffic / target.memory_bandwidth

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, t_i, t_o = workload, params["t_i"], params["t_o"]
        inputs, outputs = w.in_channels // w.groups, w.out_channels // w.groups
        kernel = cc.ColumnGeometry.of(w, target.lanes).kernel
        data = weights[0].reshape(w.groups, outputs // t_o, t_o, inputs // t_i, t_i, *kernel)
        taps = range(5, data.ndim)
        tiles = data.transpose(0, 1, 3, *taps, 4, 2)
        spare = _stored(params, target) - t_o
        return [np.pad(tiles, [(0, 0)] * (tiles.ndim - 1) + [(0, spare)])]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target))


def _vectors(t_o: int, target: CpuTarget) -> tuple[int, int]:
    """Vectors that hold a tile's channels, the last one perhaps in part, and their lanes."""
    lanes = min(target.lanes, 1 << (t_o - 1).bit_length())
    return -(-t_o // lanes), lanes


def _stored(params: Params, target: CpuTarget) -> int:
    """Channels of a tile as the weights store them: with zeros up to whole vectors of them."""
    return prod(_vectors(params["t_o"], target)) if params["over"] == "channels" else params["t_o"]


def _column_tile(g: cc.ColumnGeometry, params: Params, target: CpuTarget) -> cc.ColumnTile:
    lanes = cc.vector_lanes(g.out[-1], target)
    high = min(params["high"], params["chunk"]) if len(g.out) == 2 else params["high"]
    return cc.ColumnTile(params["t_o"], high, min(params["width"], g.out[-1] // lanes), lanes)


def _emit(w: ConvWorkload, params: Params, target: CpuTarget) -> None:
    g = cc.ColumnGeometry.of(w, target.lanes)
    t_i, t_o, chunk = params["t_i"], params["t_o"], params["chunk"]
    inputs, outputs = w.in_channels // w.groups, w.out_channels // w.groups
    data = emit.argument("data", w.in_shape)
    stored = _stored(params, target)
    weight = emit.argument(
        "weight", (w.groups, outputs // t_o, inputs // t_i, *g.kernel, t_i, stored)
    )
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    data = emit.view(data, (w.batch, w.in_channels, *g.spatial))
    out = emit.view(out, (w.batch, w.out_channels, *g.out))
    epilogue, operands = lifted_epilogue(w.epilogue, operands, g.out, 0)
    extents = (inputs // t_i, t_i)

    def finish(n: Any, channel: Any, at: Sequence[Any], value: tirx.Expr) -> None:
        value = apply_epilogue(epilogue, operands, 0, [n, channel, *at], [value])
        T.buffer_store(out, value, [n, w.stored_channel(channel), *at])

    def columns(n: Any, group: Any, first: Any, copy: Any, block: Any) -> None:
        tile = _column_tile(g, params, target)

        def tile_at(*at: Any) -> None:
            *rows, column = at

            def source(ci: Any, offsets: Any, h: int, x: Any, offset: Any) -> tirx.Expr:
                lines = [*rows[:-1], rows[-1] + h]
                where = [r * s + o for r, s, o in zip(lines, g.stride, offsets, strict=False)]
                part, shift = offset % g.stride[-1], offset // g.stride[-1]
                return copy[(ci[0], *where, ci[1], part, column + x + shift)]

            def store(r: int, h: int, x: Any, value: tirx.Expr) -> None:
                lines = [*rows[:-1], rows[-1] + h]
                at = [first + lines[0], *lines[1:], column + x]
                finish(n, group * outputs + block * t_o + r, at, value)

            cc.emit_tile(
                tile, extents, g.taps(),
                lambda ci, taps, r: weight[(group, block, ci[0], *taps, ci[1], r)],
                source, store, params["unroll_kw"],
            )  # fmt: skip

        sizes = (*(1,) * (len(g.out) - 2), tile.high, tile.width)
        cc.emit_cover((chunk, *g.out[1:]), sizes, tile_at)

    def channels(n: Any, group: Any, first: Any, copy: Any, block: Any, local: Any) -> None:
        vectors, lanes = _vectors(t_o, target)
        tile = cc.ColumnTile(params["width"], 1, vectors, lanes)

        def tile_at(*at: Any) -> None:
            *rows, column = at

            # The roles are swapped: scalars of the input meet vectors of weights.
            def scalar(ci: Any, taps: Any, x: int) -> tirx.Expr:
                *outer, offset = (t * d for t, d in zip(taps, g.dilation, strict=True))
                where = [r * s + o for r, s, o in zip(rows, g.stride, outer, strict=False)]
                position = (column + x) * g.stride[-1] + offset
                part, x_at = position % g.stride[-1], position // g.stride[-1]
                if g.phases == 1:
                    part = 0
                return copy[(ci[0], *where, ci[1], part, x_at)]

            taps = tuple(cc.Taps(k) for k in g.kernel)
            cc.emit_tile(
                tile, extents, taps, scalar,
                lambda ci, outer, _, lane, j: weight[
                    (group, block, ci[0], *outer, j, ci[1], lane)
                ],
                lambda x, _, lane, value: T.buffer_store(
                    local, value, [*rows, column + x, lane]
                ),
                params["unroll_kw"],
            )  # fmt: skip

        sizes = (*(1,) * (len(g.out) - 1), tile.channels)
        cc.emit_cover((chunk, *g.out[1:]), sizes, tile_at)
        lanes = cc.vector_lanes(g.out[-1], target)

        def unpack(channel: Any, *at: Any) -> None:
            *rows, column = at
            with T.vectorized(0, lanes) as x:
                value = local[(*rows, column + x, channel)]
                place = [first + rows[0], *rows[1:], column + x]
                finish(n, group * outputs + block * t_o + channel, place, value)

        cc.emit_cover((t_o, chunk, *g.out[1:]), (*(1,) * len(g.out), lanes), unpack)

    with emit.parallel_tasks(w.groups, w.batch, -(-g.out[0] // chunk)) as (group, n, c):
        first = cuts.panel_start(c, chunk, g.out[0])
        copy = stage_columns(w, g, t_i, data, n, group, first, chunk)
        local = None
        if params["over"] == "channels":
            local = emit.workspace((chunk, *g.out[1:], stored))
        with emit.loop(outputs // t_o) as block:
            if local is None:
                columns(n, group, first, copy, block)
            else:
                channels(n, group, first, copy, block, local)
