"""Product with a constant matrix whose rows are normalised, as behind attention and behind each
network of a transformer whose norms come last, or as the softmax of a classifier.

A task computes all columns of its rows into scratch memory that stays in its L2 cache, and
normalises them from there. So only the rows are shared out, and every core reads all weights.
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
from tvm_ext.schedules.strided_product import stores_all_rows
from tvm_ext.schedules.workload import NormalizeWorkload
from tvm_ext.target import CpuTarget


@register
class MatmulNormalized(Algorithm[NormalizeWorkload]):
    """The product makes the rows of the norm; both have rows of whole tensors.

    Parameters of the plan: as of `matmul`, without parts of the columns.
    """

    name: ClassVar[str] = "matmul_normalized"
    workload_type: ClassVar[type] = NormalizeWorkload
    producers: ClassVar[tuple[tuple[type, ...], ...]] = ((MatmulWorkload,),)

    def supports(self, workload: NormalizeWorkload, target: CpuTarget) -> Support:
        product: MatmulWorkload = workload.producer
        rows = stores_all_rows(product) and takes_rows(workload, product.out_shape, target)
        return rows and constant_right_side(product)

    def space(self, workload: NormalizeWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        rows, n, k = workload.rows, workload.columns, workload.producer.k
        space = gemm_cuts.packed_space(rows, n, k, target)
        del space["pieces"]
        return space

    def default(self, workload: NormalizeWorkload, target: CpuTarget) -> dict[str, Any]:
        w, f = workload, fold_batch(workload.producer)
        tile = gemm_cuts.best_panel_tile(f.m, f.n, target, f.lhs.strides[-2])
        parts = gemm_cuts.best_parts(f.k, tile, target)
        # A task's rows of both sides stay in its cache.
        least = gemm_cuts.least_chunks(f.m, f.k // parts + f.n, target)
        shares = {least}
        if 2 * f.macs >= gemm_cuts.PARALLEL_FLOPS:
            shares.add(gemm_cuts.even_chunks(least, f.m, target))
        choices = [
            {"tile": tile.rows, "blocks": tile.columns, "chunks": chunks, "k_parts": parts}
            for chunks in sorted(shares)
        ]
        return min(choices, key=lambda params: self.cost(w, params, target))

    def cost(self, workload: NormalizeWorkload, params: Params, target: CpuTarget) -> float:
        w, product = workload, workload.producer
        b = blocking(product, params, target)
        stride = fold_batch(product).lhs.strides[-2]
        after = norm_seconds(w, target) / costs.busy_cores(b.tasks[0], target)
        return gemm_cuts.packed_seconds(b, w.bytes, target, stride) + after

    def pack(
        self,
        workload: NormalizeWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        *own, right = weights
        packed = pack_weight(workload.producer, right, params["blocks"], target.lanes)
        return [*map(np.ascontiguousarray, own), packed]

    def kernel(
        self,
        workload: NormalizeWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, blocking(workload.producer, params, target)))


def _emit(w: NormalizeWorkload, b: gemm.Blocking) -> None:
    """Declare the arguments and emit the parallel tasks."""
    product = w.producer
    f = fold_batch(product)
    left = emit.argument("left", product.lhs_shape)
    weights = declare_weights(w)
    right = emit.argument("right", packed_shape(b))
    before = declare_operands(product.epilogue, 0, "y")
    after = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    left, right = (emit.view(x, (prod(x.shape),)) for x in (left, right))
    out = emit.view(out, (b.rows, b.n))
    between = rowwise_epilogue(product.epilogue, before, product.out.shape)
    finish = rowwise_epilogue(w.epilogue, after, w.out_shape)
    panels = PackedPanels(right, b)

    with emit.parallel_tasks(b.tasks[0]) as (chunk,):
        first = cuts.panel_start(chunk, b.chunk, b.rows)
        # Not in the output: rows that two tasks compute would be normalised by both.
        sums = ScratchRows(b.chunk, b.n)

        def store(row: Any, column0: Any, c: Any, i: Any, value: tirx.Expr) -> None:
            column = column0 + c * b.lanes + i
            sums.store(row - first, column, between(row, column, value))

        gemm.emit_task(
            b, chunk, 0, lambda row, step: left[f.lhs.index((row, step))], panels.panel, store,
            panels.fetch,
        )  # fmt: skip
        normalize_rows(
            w, b.lanes, b.chunk, weights, sums.load,
            lambda i, x, value: T.buffer_store(out, finish(first + i, x, value), [first + i, x]),
        )  # fmt: skip
