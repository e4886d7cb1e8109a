"""Product of two tensors that are both computed at run time, as in attention.

The loops are those of `matmul`, in each batch element on its own. The right side isn't known ahead
of time, so a task copies one panel of it at a time to where it is read in order; with only a few
rows to share that copy, the right side is read in place.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit, gemm, gemm_cuts
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.tiles import Tile
from tvm_ext.schedules.workload import MatmulWorkload, Shape
from tvm_ext.target import CpuTarget

# Cycles to copy one element of a panel: in vectors, or one by one when it is transposed.
_COPY_CYCLES = {False: 0.25, True: 1.5}


@register
class BatchMatmul(Algorithm[MatmulWorkload]):
    """Row-major operands and output; the right side may be stored as (n, k).

    Parameters of the plan: `tile` rows and `blocks` vectors of columns in registers; `chunks`
    parts of the rows and `pieces` parts of the columns of one batch element, the units of work
    of the threads; `k_parts` parts of the reduction; `copy` copies each panel of the right side.
    """

    name: ClassVar[str] = "batch_matmul"
    workload_type: ClassVar[type] = MatmulWorkload

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        if workload.dtype != "float32":
            return refuse(f"dtype {workload.dtype}; only float32")
        if workload.packed:
            return refuse("packed is True; only two operands computed at run time")
        return YES

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        w = workload
        tiles = gemm_cuts.panel_tiles(w.m, w.n, target)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunks": tuple(range(1, w.m + 1)),
            "pieces": tuple(range(1, -(-w.n // target.lanes) + 1)),
            "k_parts": gemm_cuts.legal_parts(w.k),
            "copy": (False, True) if _readable(w, target) else (True,),
        }

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        tile = gemm_cuts.best_panel_tile(w.m, w.n, target)
        parts = gemm_cuts.best_parts(w.k, tile, target)
        chunks, pieces = gemm_cuts.share_out(w.m, w.n, w.k, parts, tile, target, prod(w.batch))
        copy = w.m > 2 * tile.rows or not _readable(w, target)
        return {
            "tile": tile.rows, "blocks": tile.columns, "chunks": chunks, "pieces": pieces,
            "k_parts": parts, "copy": copy,
        }  # fmt: skip

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        w = workload
        share = gemm_cuts.panel_efficiency(Tile(params["tile"], params["blocks"]), w.m, w.n, target)
        cores = costs.busy_cores(prod(w.batch) * params["chunks"] * params["pieces"], target)
        compute = 2 * w.macs / share
        if params["copy"]:
            # In operations that the FMA units could have done meanwhile.
            copied = prod(w.batch) * params["chunks"] * w.k * w.n
            compute += copied * _COPY_CYCLES[w.transpose_b] * 4 * target.lanes
        traffic = w.bytes + 2 * prod(w.batch) * w.m * w.n * (params["k_parts"] - 1)
        return compute / (target.fma_peak * cores) + 0.5 * traffic / target.memory_bandwidth

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        w, p = workload, params
        blocking = gemm.Blocking(
            w.m, w.n, w.k, target.lanes, p["blocks"], p["tile"], p["chunks"], p["pieces"],
            p["k_parts"],
        )  # fmt: skip
        return emit.build(lambda: _emit(w, blocking, p["copy"]))


def _readable(w: MatmulWorkload, target: CpuTarget) -> bool:
    """Whether vectors of columns can be loaded from the right side in place."""
    return not w.transpose_b and w.n >= target.lanes


def operand_shapes(w: MatmulWorkload) -> tuple[Shape, Shape, Shape]:
    """Shapes of the left, right and output tensors as the model has them."""
    out = w.out_shape or (*w.batch, w.m, w.n)
    matrix = (w.n, w.k) if w.transpose_b else (w.k, w.n)
    # One right side for all: the output's batch dimensions are folded into m.
    shared = prod(out[:-2]) != prod(w.batch)
    leading = (1,) * (len(out) - 2) if shared else out[:-2]
    return w.lhs_shape or (*out[:-1], w.k), w.rhs_shape or (*leading, *matrix), out


def _emit(w: MatmulWorkload, b: gemm.Blocking, copy: bool) -> None:
    left_shape, right_shape, out_shape = operand_shapes(w)
    count = prod(w.batch)
    matrix = (w.n, w.k) if w.transpose_b else (w.k, w.n)
    left, right = emit.argument("left", left_shape), emit.argument("right", right_shape)
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", out_shape)
    left = emit.view(left, (count, w.m, w.k))
    right = emit.view(right, (count, *matrix))
    out = emit.view(out, (count * w.m, w.n))
    finish = rowwise_epilogue(w.epilogue, operands, out_shape)

    def element(batch: Any, step: Any, column: Any) -> tirx.Expr:
        return right[(batch, column, step) if w.transpose_b else (batch, step, column)]

    def copied(batch: Any, panel: Any, base: Any, local: Any) -> gemm.Right:
        column0 = cuts.panel_start(panel, b.span, w.n)
        if w.n < b.span:
            with emit.loop(b.steps) as step, emit.loop(w.n) as i:
                T.buffer_store(local, element(batch, base + step, i), [step, 0, i])
        elif w.transpose_b:
            with emit.nest((b.blocks, b.lanes)) as (c, i), emit.loop(b.steps) as step:
                value = element(batch, base + step, column0 + c * b.lanes + i)
                T.buffer_store(local, value, [step, c, i])
        else:
            with emit.nest((b.steps, b.blocks)) as (step, c), T.vectorized(0, b.lanes) as i:
                value = element(batch, base + step, column0 + c * b.lanes + i)
                T.buffer_store(local, value, [step, c, i])
        return lambda step, c, i: local[step, c, i]

    def in_place(batch: Any, panel: Any, base: Any) -> gemm.Right:
        column0 = cuts.panel_start(panel, b.span, w.n)
        return lambda step, c, i: element(batch, base + step, column0 + c * b.lanes + i)

    with emit.parallel_tasks(count, *b.tasks) as (batch, chunk, piece):
        local = emit.workspace((b.steps, b.blocks, b.lanes)) if copy else None
        if local is not None and w.n < b.span:
            # The lanes past n are multiplied too: they must hold numbers.
            with emit.loop(b.steps) as step, T.vectorized(0, b.lanes) as i:
                T.buffer_store(local, tirx.const(0.0, "float32"), [step, 0, i])

        def store(row: Any, column0: Any, c: Any, i: Any, value: tirx.Expr) -> None:
            at, column = batch * w.m + row, column0 + c * b.lanes + i
            T.buffer_store(out, finish(at, column, value), [at, column])

        gemm.emit_task(
            b, chunk, piece,
            lambda row, step: left[batch, row, step],
            lambda panel, base: (
                in_place(batch, panel, base)
                if local is None
                else copied(batch, panel, base, local)
            ),
            store,
        )  # fmt: skip
