"""Depthwise convolution on channel-blocked data, limited by memory rather than by arithmetic.

One vector holds `lanes` channels of one position, so every tap is one multiply-add of an input
vector and a weight vector. A tile of output columns accumulates in registers; the taps are visited
in the order of the input columns, so that neighbouring outputs share each load.
`depthwise_rows` has the loops over the tiles of a row.
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
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.depthwise_rows import (
    PARALLEL_BYTES,
    core_seconds,
    emit_row,
    pack_filters,
    supports_depthwise,
    tile_columns,
)
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.window import unflatten
from tvm_ext.target import CpuTarget

# Registers that hold no accumulator: the input column and the weights of a line of three taps.
_OTHER_REGISTERS = 4


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
        if not (support := supports_depthwise(w)):
            return support
        if not 1 <= len(w.spatial) <= 3:
            return refuse(f"{len(w.spatial)} spatial dimensions; only 1 to 3")
        return support

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
        parallel = w.bytes > PARALLEL_BYTES and target.cores > 1
        planes = w.batch * -(-w.in_channels // target.lanes)
        pieces = 1
        if parallel and planes % target.cores and planes < 4 * target.cores:
            pieces = min(rows, -(-4 * target.cores // planes))
        return {
            "tile": tile_columns(w.out_spatial[-1], target),
            "rows": -(-rows // pieces),
            "parallel": parallel,
        }

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w = workload
        cores = target.cores if params["parallel"] else 1
        compute = core_seconds(w, target) / cores
        memory = w.bytes / target.bandwidth(cores)
        return max(compute, memory) + costs.fork(cores)

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        return [pack_filters(workload, weights[0], target)]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target.lanes))


def _emit(w: ConvWorkload, params: Params, v: int) -> None:
    """Declare the arguments and emit the loops over tasks and rows."""
    blocks = -(-w.in_channels // v)
    data = emit.argument("data", stored_shape(w.in_shape, v))
    weight = emit.argument("weight", (blocks, *w.kernel, v))
    operands = declare_operands(w.epilogue, v)
    out = emit.argument("out", stored_shape(w.out_shape, v))
    rows, count = prod(w.out_spatial[:-1]), params["rows"]

    with emit.tasks(params["parallel"], w.batch, blocks, -(-rows // count)) as (n, block, task):
        first = cuts.panel_start(task, count, rows)
        with emit.loop(count) as i:
            at = unflatten(first + i, w.out_spatial[:-1])

            def put(x: Any, lane: Any, value: tirx.Expr) -> None:
                where = [n, block, *at, x, lane]
                T.buffer_store(out, apply_epilogue(w.epilogue, operands, v, where, [value]), where)

            emit_row(w, params["tile"], v, data, weight, n, block, at, put)
