"""Depthwise convolution of planes: the model's own layout, with channels in vectors inside a task.

A row of a small plane doesn't fill a vector of columns. A task turns the rows of a channel block
that it reads into vectors of channels, convolves these as `depthwise` does, and turns the results
back; neither copy leaves the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.block_transpose import (
    Side,
    block_to_planes,
    each_block,
    planes_to_block,
    transposing_seconds,
)
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
from tvm_ext.target import CpuTarget


@register
class DepthwisePlanes(Algorithm[ConvWorkload]):
    """Plain input and output, one filter for each channel.

    Parameters of the plan: `tile` output columns in registers; `rows` of outputs in a task;
    `parallel`, whether threads share the tasks.
    """

    name: ClassVar[str] = "depthwise_planes"
    workload_type: ClassVar[type] = ConvWorkload

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if not (support := supports_depthwise(w)):
            return support
        if len(w.spatial) != 2:
            return refuse(f"{len(w.spatial)} spatial dimensions; only 2")
        for i, operand in enumerate(w.epilogue.operands):
            if operand.view is not None or operand.seen[2:] != (1, 1):
                return refuse(f"operand {i} isn't the same in all positions")
        return support

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        height, width = workload.out_spatial
        return {
            "tile": tuple(range(1, tile_columns(width, target) + 1)),
            "rows": tuple(range(1, height + 1)),
            "parallel": (False, True),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, (height, width) = workload, workload.out_spatial
        parallel = w.bytes > PARALLEL_BYTES and target.cores > 1
        # Both copies of a task stay in its share of the L2 cache.
        row = 4 * target.lanes * (w.strides[0] * w.spatial[1] + width)
        pieces = -(-height // max(1, int(costs.L2_SHARE * target.l2 / row)))
        blocks = w.batch * -(-w.in_channels // target.lanes)
        if parallel and blocks * pieces % target.cores and blocks * pieces < 4 * target.cores:
            pieces = min(height, max(pieces, -(-4 * target.cores // blocks)))
        return {
            "tile": tile_columns(width, target), "rows": -(-height // pieces),
            "parallel": parallel,
        }  # fmt: skip

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, v = workload, target.lanes
        cores = target.cores if params["parallel"] else 1
        tasks = -(-w.out_spatial[0] // params["rows"])
        positions = tasks * _input_rows(w, params["rows"]) * w.spatial[1]
        positions += w.out_spatial[0] * w.out_spatial[1]
        moved = w.batch * -(-w.in_channels // v) * v * positions
        compute = (core_seconds(w, target) + transposing_seconds(moved, target)) / cores
        return max(compute, w.bytes / target.bandwidth(cores)) + costs.fork(cores)

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


def _input_rows(w: ConvWorkload, rows: int) -> int:
    """Rows of the input that some rows of the output read, those of a padding left out."""
    reach = (rows - 1) * w.strides[0] + w.dilation[0] * (w.kernel[0] - 1) + 1
    return min(reach, w.spatial[0])


class _Rows:
    """The rows of one channel block in a task, by their place in the whole input."""

    def __init__(self, copy: Any, first: Any, width: int) -> None:
        self._copy, self._first, self._width = copy, first, width

    def __getitem__(self, index: tuple[Any, ...]) -> tirx.Expr:
        _, _, row, column, lane = index
        return self._copy[(row - self._first) * self._width + column, lane]


def _emit(w: ConvWorkload, params: Params, v: int) -> None:
    """Declare the arguments and emit the tasks: rows of a channel block."""
    (height, width), (out_height, out_width) = w.spatial, w.out_spatial
    channels, count = w.in_channels, params["rows"]
    blocks, rows = -(-channels // v), _input_rows(w, params["rows"])
    data = emit.argument("data", w.in_shape)
    weight = emit.argument("weight", (blocks, *w.kernel, v))
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    data = emit.view(data, (w.batch, channels, height * width))
    out = emit.view(out, (w.batch, channels, out_height * out_width))

    with emit.tasks(params["parallel"], w.batch, blocks, -(-out_height // count)) as (n, block, t):
        first = cuts.panel_start(t, count, out_height)
        low = tirx.const(0, "int32")
        if rows < height:
            origin = first * w.strides[0] - w.pad_before[0]
            low = tirx.min(tirx.max(low + origin, 0), height - rows)
        read, made = emit.workspace((rows * width, v)), emit.workspace((count * out_width, v))

        def source(k: Any, live: int) -> None:
            planes = Side(data, lambda i, p: [n, k * v + i, low * width + p])
            planes_to_block(planes, Side(read, lambda i, p: [p, i]), rows * width, v, live)

        def result(k: Any, live: int) -> None:
            def finish(i: Any, value: tirx.Expr) -> tirx.Expr:
                return apply_epilogue(w.epilogue, operands, 0, [n, k * v + i, 0, 0], [value])

            planes = Side(out, lambda i, p: [n, k * v + i, first * out_width + p])
            lanes = Side(made, lambda i, p: [p, i])
            block_to_planes(lanes, planes, count * out_width, v, live, finish=finish)

        each_block(blocks, channels % v, v, block, source)
        with emit.loop(count) as i:

            def put(x: Any, lane: Any, value: tirx.Expr) -> None:
                T.buffer_store(made, value, [i * out_width + x, lane])

            emit_row(
                w, params["tile"], v, _Rows(read, low, width), weight, n, block, [first + i], put
            )
        each_block(blocks, channels % v, v, block, result)
