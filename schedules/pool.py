"""Max and average pooling, row by row; `pool_line` has the loops of a row.

A pool over the whole input is a plain reduction over its positions.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.block_transpose import Side, each_block, planes_to_block
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.pool_global import emit_global
from tvm_ext.schedules.pool_line import PoolLine, line_taps, pool_seconds
from tvm_ext.schedules.window import unflatten
from tvm_ext.schedules.workload import PoolWorkload
from tvm_ext.target import CpuTarget

_VECTORS = (1, 2, 3, 4, 6, 8)
# What a core streams in about the time that a parallel loop takes to start.
_PARALLEL_BYTES = 64 << 10
_NO_OPERANDS: dict[int, tirx.Expr] = {}


@register
class Pool(Algorithm[PoolWorkload]):
    """Separable pooling, vectorised over channel lanes or, in the plain layout, over columns.

    What is pooled in the plain layout can be stored in blocks, some rows at a time.

    Parameters of the plan: `vectors` accumulated in registers at a time; `rows` of outputs in a
    task; `parallel`, whether threads share the tasks.
    """

    name: ClassVar[str] = "pool"
    workload_type: ClassVar[type] = PoolWorkload

    def supports(self, workload: PoolWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.kind not in ("max", "avg"):
            return refuse(f"pool kind {w.kind!r}; only max and avg")
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if not 3 <= len(w.shape) <= 5:
            return refuse(f"rank {len(w.shape)}; only 3 to 5")
        if w.prologue and (w.prologue.operands or w.prologue.results != 1):
            return refuse("a prologue of more than the input")
        if w.prologue and w.is_global:
            return refuse("a prologue of one window")
        return YES

    def layouts(self, workload: PoolWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        v = target.lanes
        turning = not workload.is_global and not workload.epilogue.operands
        return ((v, v), (0, 0), (0, v)) if turning else ((v, v), (0, 0))

    def space(self, workload: PoolWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {
            "vectors": _VECTORS,
            "rows": tuple(range(1, prod(workload.out_shape[2:-1]) + 1)),
            "parallel": (False, True),
        }

    def default(self, workload: PoolWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        rows = prod(w.out_shape[2:-1])
        parallel = w.bytes > _PARALLEL_BYTES and target.cores > 1
        planes = w.shape[0] * -(-w.shape[1] // target.lanes)
        pieces = 1
        if parallel and planes % target.cores and planes < 4 * target.cores:
            pieces = min(rows, -(-4 * target.cores // planes))
        return {"vectors": 4, "rows": -(-rows // pieces), "parallel": parallel}

    def cost(self, workload: PoolWorkload, params: Params, target: CpuTarget) -> float:
        w = workload
        cores = target.cores if params["parallel"] else 1
        taps = prod(w.shape[2:]) if w.is_global else line_taps(w)
        memory = w.bytes / target.bandwidth(cores)
        return max(pool_seconds(w, taps, target) / cores, memory) + costs.fork(cores)

    def kernel(
        self, workload: PoolWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        if layout[0] != layout[1]:
            return emit.build(lambda: _emit_turning(workload, params, target))
        emitter = emit_global if workload.is_global else _emit
        return emit.build(lambda: emitter(workload, params, target, layout[0]))


def _emit(w: PoolWorkload, params: Params, target: CpuTarget, block: int) -> None:
    """Declare the arguments and emit the loops over tasks and rows."""
    v = target.lanes
    outer = w.out_shape[2:-1]
    planes = -(-w.shape[1] // v) if block else w.shape[1]
    data = emit.argument("data", stored_shape(w.shape, block))
    operands = declare_operands(w.epilogue, block)
    out = emit.argument("out", stored_shape(w.out_shape, block))
    rows, unit = prod(outer), v if block else 1
    data = emit.view(data, (w.shape[0], planes, *w.shape[2:-1], w.shape[-1] * unit))
    count = params["rows"]
    tasks = -(-rows // count)
    with emit.tasks(params["parallel"], w.shape[0], planes, tasks) as (n, plane, task):
        line = PoolLine(w, v, block, params["vectors"])
        first = cuts.panel_start(task, count, rows)
        with emit.loop(count) as i:
            at = unflatten(first + i, outer)

            def store(column: Any, lane: Any, value: tirx.Expr) -> None:
                index = [n, plane, *at, column] + ([lane] if block else [])
                T.buffer_store(
                    out, apply_epilogue(w.epilogue, operands, block, index, [value]), index
                )

            def element(where: Any, x: Any) -> tirx.Expr:
                value = data[(n, plane, *where, x)]
                return (
                    w.prologue.evaluate([value], _NO_OPERANDS.__getitem__) if w.prologue else value
                )

            line.row(at, element, store)


def _emit_turning(w: PoolWorkload, params: Params, target: CpuTarget) -> None:
    """Pool planes, a few rows of a block's channels at a time, and store these in lanes."""
    v, (batch, channels, *outer, width) = target.lanes, w.out_shape
    rows, count, blocks = prod(outer), params["rows"], -(-channels // v)
    data = emit.argument("data", w.shape)
    out = emit.argument("out", stored_shape(w.out_shape, v))
    out = emit.view(out, (batch, blocks, rows * width, v))
    # Enough for whole vectors of positions.
    height = min(count, -(-2 * v // width))
    with emit.tasks(params["parallel"], batch, blocks, -(-rows // count)) as (n, block, task):
        line = PoolLine(w, v, 0, params["vectors"])
        planes = emit.workspace((v, height * width))
        first = cuts.panel_start(task, count, rows)

        def some_rows(k: Any, live: int, start: Any) -> None:
            with emit.loop(live) as channel, emit.loop(height) as i:

                def element(where: Any, x: Any) -> tirx.Expr:
                    value = data[(n, k * v + channel, *where, x)]
                    return (
                        w.prologue.evaluate([value], _NO_OPERANDS.__getitem__)
                        if w.prologue
                        else value
                    )

                def store(column: Any, lane: Any, value: tirx.Expr) -> None:
                    value = apply_epilogue(w.epilogue, [], 0, [], [value])
                    T.buffer_store(planes, value, [channel, i * width + column])

                line.row(unflatten(start + i, outer), element, store)
            planes_to_block(
                Side(planes, lambda i, p: [i, p]),
                Side(out, lambda i, p: [n, k, start * width + p, i]),
                height * width, v, live,
            )  # fmt: skip

        def panel(k: Any, live: int) -> None:
            with emit.loop(-(-count // height)) as t:
                some_rows(k, live, first + cuts.panel_start(t, height, count))

        each_block(blocks, channels % v, v, block, panel)
