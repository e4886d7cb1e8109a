"""Depthwise convolution on channel-blocked data, limited by memory rather than by arithmetic.

One vector holds `lanes` channels of one position, so every tap is one multiply-add of an input
vector and a weight vector. A tile of output columns accumulates in registers; the taps are visited
in the order of the input columns, so that neighbouring outputs share each load.

Nothing is padded or copied: the tiles at both ends of a row are emitted without the taps that fall
outside, and rows at the border run over fewer taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_prologue import refuse_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.pool_stage import refuse_pool
from tvm_ext.schedules.window import Axis, unflatten
from tvm_ext.target import CpuTarget

# Registers that hold no accumulator: the input column and the weights of a line of three taps.
_OTHER_REGISTERS = 4
# Taps of a whole window that are unrolled; beyond it the outer dimensions are loops.
_UNROLL_TAPS = 9
# A longer line of taps is a loop, for the tiles that every line of taps fits in.
_LINE = 7
# What a core convolves in about the time that a parallel loop takes to start.
_PARALLEL_BYTES = 96 << 10


@register
class Depthwise(Algorithm[ConvWorkload]):
    """Blocked input and output, one filter for each channel.

    Parameters of the plan: `tile` output columns in registers; `rows` of outputs in a task;
    `parallel`, whether threads share the tasks.
    """

    name: ClassVar[str] = "depthwise"
    workload_type: ClassVar[type] = ConvWorkload

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if not w.depthwise:
            return refuse(
                f"{w.in_channels} -> {w.out_channels} channels in {w.groups} groups; "
                "only as many groups as input and output channels"
            )
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if not 1 <= len(w.spatial) <= 3:
            return refuse(f"{len(w.spatial)} spatial dimensions; only 1 to 3")
        return refuse_prologue(w) and refuse_pool(w)

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes),)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        width = workload.out_spatial[-1]
        return {
            "tile": tuple(range(1, min(width, target.registers - _OTHER_REGISTERS) + 1)),
            "rows": tuple(range(1, prod(workload.out_spatial[:-1]) + 1)),
            "parallel": (False, True),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        rows = prod(w.out_spatial[:-1])
        parallel = w.bytes > _PARALLEL_BYTES and target.cores > 1
        planes = w.batch * -(-w.in_channels // target.lanes)
        pieces = 1
        if parallel and planes % target.cores and planes < 4 * target.cores:
            pieces = min(rows, -(-4 * target.cores // planes))
        # Eight accumulators hide the latency of two multiply-adds a cycle; more would spill.
        return {
            "tile": min(w.out_spatial[-1], 8 if target.registers < 32 else 12),
            "rows": -(-rows // pieces),
            "parallel": parallel,
        }

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w = workload
        cores = target.cores if params["parallel"] else 1
        padded = -(-w.in_channels // target.lanes) * target.lanes / w.in_channels
        compute = w.flops * padded / (0.6 * target.fma_peak * cores)
        memory = w.bytes / target.bandwidth(cores)
        return max(compute, memory) + costs.fork(cores)

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        v, channels = target.lanes, workload.in_channels
        blocks = -(-channels // v)
        data = weights[0].reshape(channels, *workload.kernel)
        data = np.pad(data, [(0, blocks * v - channels)] + [(0, 0)] * len(workload.kernel))
        data = data.reshape(blocks, v, *workload.kernel)
        return [np.ascontiguousarray(np.moveaxis(data, 1, -1))]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target.lanes))


def _axes(w: ConvWorkload) -> list[Axis]:
    return [
        Axis(*numbers)
        for numbers in zip(
            w.spatial, w.out_spatial, w.kernel, w.strides, w.dilation, w.pad_before, strict=True
        )
    ]


def _pairs(axis: Axis, start: int | None, size: int) -> list[tuple[int, int]]:
    """(column, tap) of a tile by input column; `start` is None where no tap can fall outside."""
    pairs = [
        (column, tap)
        for column in range(size)
        for tap in range(axis.kernel)
        if start is None or 0 <= axis.source(start + column, tap) < axis.size
    ]
    return sorted(pairs, key=lambda p: (p[0] * axis.stride + p[1] * axis.dilation, p[0]))


def _runs(axis: Axis, tile: int) -> list[tuple[int, int, int, bool]]:
    """The row cut in tiles, as (first column, tiles, columns of a tile, whether at a border)."""
    runs: list[tuple[int, int, int, bool]] = []
    start = 0
    for count, size in cuts.split_extent(axis.out, tile):
        for _ in range(count):
            last = axis.source(start + size - 1, axis.kernel - 1)
            border = axis.source(start, 0) < 0 or last >= axis.size
            if runs and not border and runs[-1][2:] == (size, False):
                runs[-1] = (runs[-1][0], runs[-1][1] + 1, size, False)
            else:
                runs.append((start, 1, size, border))
            start += size
    return runs


def _emit(w: ConvWorkload, params: Params, v: int) -> None:
    """Declare the arguments and emit the loops over tasks, rows and tiles."""
    *outer, line = _axes(w)
    blocks = -(-w.in_channels // v)
    data = emit.argument("data", stored_shape(w.in_shape, v))
    weight = emit.argument("weight", (blocks, *w.kernel, v))
    operands = declare_operands(w.epilogue, v)
    out = emit.argument("out", stored_shape(w.out_shape, v))
    rows, count = prod(w.out_spatial[:-1]), params["rows"]
    unrolled = prod(w.kernel) <= _UNROLL_TAPS

    def tile(
        n: Any, block: Any, at: list[Any], taps: list[Any], start: Any, size: int, border: bool
    ) -> None:
        acc = T.alloc_buffer((size * v,), "float32", scope="global")

        def add(column: int, row: list[Any], index: list[Any], tap: Any) -> None:
            x = line.source(start + column, tap)
            with emit.loop(v, "vectorized") as lane:
                product = data[(n, block, *row, x, lane)] * weight[(block, *index, tap, lane)]
                T.buffer_store(acc, acc[column * v + lane] + product, [column * v + lane])

        with emit.loop(size, "unroll") as i, emit.loop(v, "vectorized") as lane:
            T.buffer_store(acc, tirx.const(0.0, "float32"), [i * v + lane])
        whole = all(isinstance(extent, int) for _, extent in taps)
        kind = "unroll" if unrolled and whole else "serial"
        with emit.nest([extent for _, extent in taps], kind) as steps:
            index = [low + step for (low, _), step in zip(taps, steps, strict=True)]
            row = [axis.source(p, t) for axis, p, t in zip(outer, at, index, strict=True)]
            pairs = _pairs(line, start if border else None, size)
            if line.kernel <= _LINE:
                for column, tap in pairs:
                    add(column, row, index, tap)
            elif border:
                for column in range(size):
                    inside = [tap for c, tap in pairs if c == column]
                    with emit.loop(len(inside)) as tap:
                        add(column, row, index, inside[0] + tap)
            else:
                with emit.loop(line.kernel) as tap:
                    for column in range(size):
                        add(column, row, index, tap)
        with emit.loop(size, "unroll") as i, emit.loop(v, "vectorized") as lane:
            where = [n, block, *at, start + i, lane]
            value = apply_epilogue(w.epilogue, operands, v, where, [acc[i * v + lane]])
            T.buffer_store(out, value, where)

    def row_of_tiles(n: Any, block: Any, at: list[Any], taps: list[Any]) -> None:
        for start, tiles, size, border in _runs(line, params["tile"]):
            with emit.loop(tiles) as t:
                tile(n, block, at, taps, start + t * size, size, border)

    full = [(0, axis.kernel) for axis in outer]
    with emit.tasks(params["parallel"], w.batch, blocks, -(-rows // count)) as (n, block, task):
        first = cuts.panel_start(task, count, rows)
        with emit.loop(count) as i:
            at = unflatten(first + i, w.out_spatial[:-1])
            cut = [axis.taps(x) for axis, x in zip(outer, at, strict=True)]
            inside = [
                extent >= axis.kernel
                for axis, (_, extent) in zip(outer, cut, strict=True)
                if axis.cut
            ]
            if not inside:
                row_of_tiles(n, block, at, full)
            else:
                with T.If(tirx.all(*inside)):
                    with T.Then():
                        row_of_tiles(n, block, at, full)
                    with T.Else():
                        row_of_tiles(n, block, at, cut)
