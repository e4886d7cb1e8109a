"""Product of one row with a constant matrix of scattered zeros.

Vectors hold neighbouring outputs, and each has columns of its own (`SortedPanels`), so what is
multiplied has to be gathered from the row (`sparse_product_gather`).

What is stored as a zero, to fill panels, is multiplied as any other weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.sparse_product_costs import in_seconds, traffic
from tvm_ext.schedules.sparse_product_gather import GatheredSums, gather_cycles
from tvm_ext.schedules.sparse_product_sorted import SortedPanels, equal_rows
from tvm_ext.schedules.sparse_product_weights import column_dtype, filters, sparse_right_side
from tvm_ext.target import CpuTarget

_ROWS = (4, 8, 16)


@register
class SparseGemv(Algorithm[MatmulWorkload]):
    """Panels of outputs, sorted by their nonzeros inside each piece.

    Parameters of the plan: `outputs` of a panel; `pieces` parts of the outputs, equal in nonzeros,
    the units of work of the threads.
    """

    name: ClassVar[str] = "sparse_gemv"
    workload_type: ClassVar[type] = MatmulWorkload
    storage: ClassVar[str] = "csr"

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        if (rows := fold_batch(workload).m) > 1:
            return refuse(f"{rows} rows; only 1")
        return sparse_right_side(workload)

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {
            "outputs": tuple(r for r in _ROWS if r == _ROWS[0] or r <= workload.n),
            "pieces": tuple(range(1, -(-workload.n // _ROWS[-1]) + 1)),
        }

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        space = self.space(workload, target)
        options = [
            {"outputs": outputs, "pieces": pieces}
            for outputs in space["outputs"]
            for pieces in costs.piece_counts(space["pieces"][-1], target)
        ]
        return min(options, key=lambda params: self.cost(workload, params, target))

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        w, cores = workload, costs.busy_cores(params["pieces"], target)
        panels = -(-w.n // params["outputs"])
        # The longest row of a sorted panel has little more than the mean.
        stored = w.sparsity.nonzeros + 0.5 * params["outputs"] * panels
        cycles = gather_cycles(stored, panels)
        nbytes = stored * (4 + np.dtype(column_dtype(w.k)).itemsize)
        return (
            in_seconds(cycles / cores, target)
            + traffic(w, nbytes, target)
            + costs.fork(min(params["pieces"], target.cores))
        )

    def pack(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        matrix = filters(workload, weights[0])
        shares = equal_rows(matrix, params["outputs"], params["pieces"])
        panels = SortedPanels.from_dense(matrix, params["outputs"], shares)
        return _sums(workload, params).pack(panels)

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target))


def _emit(w: MatmulWorkload, params: Params, target: CpuTarget) -> None:
    """Declare the arguments and emit the parallel tasks."""
    f, sums = fold_batch(w), _sums(w, params)
    left = emit.argument("left", w.lhs_shape)
    sums.declare()
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    left = emit.view(left, (prod(w.lhs_shape),))
    out = emit.view(out, (prod(w.out_shape),))
    sums.view()
    finish = rowwise_epilogue(w.epilogue, operands, w.out.shape)

    with emit.parallel_tasks(params["pieces"]) as (piece,):
        total = sums.task(piece, lambda column: left[f.lhs.index((0, column))])
        sums.store(
            piece, target.lanes, out, lambda at: f.out.index((0, at)),
            lambda at: finish(0, at, total(at)),
        )  # fmt: skip


def _sums(w: MatmulWorkload, params: Params) -> GatheredSums:
    size = params["outputs"]
    return GatheredSums(w.n, w.k, size, -(-w.n // size), params["pieces"])
