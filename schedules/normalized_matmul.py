"""Product of normalised rows with a constant matrix, as before attention and before each network of
a transformer whose norms come first.

A task normalises its rows once, into scratch memory that stays in its L2 cache, and multiplies from
there; the rows are an odd number of cache lines apart, so that those of a register tile are in
different sets of L1. Tasks that share out the columns normalise the same rows each for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit, gemm, gemm_cuts
from tvm_ext.schedules.base import Algorithm, Params, Support, register
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul import (
    PackedPanels,
    blocking,
    constant_right_side,
    pack_weight,
    packed_shape,
)
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.norm_stage import declare_weights, norm_seconds, normalize_rows, takes_rows
from tvm_ext.schedules.scratch_rows import ScratchRows
from tvm_ext.schedules.strided_product import reads_all_rows
from tvm_ext.schedules.workload import NormalizeWorkload
from tvm_ext.target import CpuTarget


@register
class NormalizedMatmul(Algorithm[MatmulWorkload]):
    """The norm makes the rows of the left side; both have rows of whole tensors.

    Parameters of the plan: as of `matmul`.
    """

    name: ClassVar[str] = "normalized_matmul"
    workload_type: ClassVar[type] = MatmulWorkload
    producers: ClassVar[tuple[tuple[type, ...], ...]] = ((NormalizeWorkload,),)

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        w = workload
        rows = reads_all_rows(w) and constant_right_side(w)
        return rows and takes_rows(_norm(w), w.lhs_shape, target)

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return gemm_cuts.packed_space(fold_batch(workload).m, workload.n, workload.k, target)

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        w, rows = workload, fold_batch(workload).m
        tile = gemm_cuts.best_panel_tile(rows, w.n, target)
        parts = gemm_cuts.best_parts(w.k, tile, target)
        least = gemm_cuts.least_chunks(rows, w.k, target)
        shares = {(least, 1), gemm_cuts.share_out(rows, w.n, w.k, 1, tile, target)}
        if 2 * w.macs >= gemm_cuts.PARALLEL_FLOPS:
            shares.add((gemm_cuts.even_chunks(least, rows, target), 1))
        choices = [
            {"tile": tile.rows, "blocks": tile.columns, "chunks": chunks, "pieces": pieces,
             "k_parts": parts}
            for chunks, pieces in sorted(shares)
        ]  # fmt: skip
        return min(choices, key=lambda params: self.cost(w, params, target))

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        w, norm = workload, _norm(workload)
        b = blocking(w, params, target)
        # The first of the passes over a row waits for it, which the others don't.
        tasks = b.tasks[0] * b.tasks[1]
        computing = norm_seconds(norm, target) / costs.busy_cores(tasks, target)
        reading = norm.source_bytes / target.bandwidth(min(tasks, target.cores))
        before = b.tasks[1] * (computing + reading)
        own = w.bytes - norm.source_bytes
        return before + gemm_cuts.packed_seconds(b, own, target)

    def pack(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        right, *others = weights
        packed = pack_weight(workload, right, params["blocks"], target.lanes)
        return [packed, *map(np.ascontiguousarray, others)]

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, blocking(workload, params, target)))


def _norm(w: MatmulWorkload) -> NormalizeWorkload:
    assert isinstance(w.producer, NormalizeWorkload)
    return w.producer


def _emit(w: MatmulWorkload, b: gemm.Blocking) -> None:
    """Declare the arguments and emit the parallel tasks."""
    norm, f = _norm(w), fold_batch(w)
    data = emit.argument("data", norm.out_shape)
    right = emit.argument("right", packed_shape(b))
    weights = declare_weights(norm)
    before = declare_operands(norm.epilogue, 0, "y")
    after = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    data, right = emit.view(data, (b.rows, b.k)), emit.view(right, (prod(packed_shape(b)),))
    out = emit.view(out, (prod(w.out_shape),))
    between = rowwise_epilogue(norm.epilogue, before, norm.out_shape)
    finish = rowwise_epilogue(w.epilogue, after, w.out.shape)
    panels = PackedPanels(right, b)

    def store(row: Any, column0: Any, c: Any, i: Any, value: tirx.Expr) -> None:
        column = column0 + c * b.lanes + i
        T.buffer_store(out, finish(row, column, value), [f.out.index((row, column))])

    with emit.parallel_tasks(*b.tasks) as (chunk, piece):
        first = cuts.panel_start(chunk, b.chunk, b.rows)
        left = ScratchRows(b.chunk, b.k)
        normalize_rows(
            norm, b.lanes, b.chunk, weights,
            lambda i, x: data[first + i, x],
            lambda i, x, value: left.store(i, x, between(first + i, x, value)),
        )  # fmt: skip
        gemm.emit_task(
            b, chunk, piece, lambda row, step: left.load(row - first, step), panels.panel, store,
            panels.fetch,
        )  # fmt: skip
