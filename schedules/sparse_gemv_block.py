"""Product of a few rows with a constant matrix whose neighbouring outputs have the same zeros.

A panel of outputs is a vector, or some of them, and keeps the columns in which one of its outputs
isn't zero (`ColumnPanels`). A kept column is read once, as it is stored, and is multiplied with the
value that it meets in each row; several columns are summed side by side, to hide the latency of the
FMAs.

What is stored as a zero, in a column that others of the panel need, is multiplied as any other
weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.pointer_run import pointer_run
from tvm_ext.schedules.sparse_product_columns import latency_cycles, side_by_side, sum_columns
from tvm_ext.schedules.sparse_product_costs import in_seconds, traffic
from tvm_ext.schedules.sparse_product_store import each_vector
from tvm_ext.schedules.sparse_product_weights import column_dtype, filters, sparse_right_side
from tvm_ext.sparsity import ColumnPanels, equal_shares
from tvm_ext.target import CpuTarget

_MOST_ROWS = 8
_PANELS = (4, 8, 16)
_LOADS = 2
# Cycles in which a panel starts and ends.
_PANEL_CYCLES = 25.0


@register
class SparseGemvBlock(Algorithm[MatmulWorkload]):
    """All rows in one register tile.

    Parameters of the plan: `outputs` of a panel; `pieces` parts of the panels, equal in what they
    keep, the units of work of the threads.
    """

    name: ClassVar[str] = "sparse_gemv_block"
    workload_type: ClassVar[type] = MatmulWorkload
    storage: ClassVar[str] = "block"

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        if (rows := fold_batch(workload).m) > _MOST_ROWS:
            return refuse(f"{rows} rows; at most {_MOST_ROWS}")
        return sparse_right_side(workload)

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {
            "outputs": _legal_panels(workload, target),
            "pieces": tuple(range(1, -(-workload.n // _PANELS[-1]) + 1)),
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
        w, size, pieces = workload, params["outputs"], params["pieces"]
        rows, vectors = fold_batch(w).m, -(-size // target.lanes)
        kept, panels = w.sparsity.kept(size), -(-w.n // size)
        column = max((rows + vectors + 1) / _LOADS, latency_cycles(rows * vectors))
        cycles = kept * column + panels * _PANEL_CYCLES
        nbytes = kept * (4 * size + np.dtype(column_dtype(w.k)).itemsize)
        return (
            in_seconds(cycles / costs.busy_cores(pieces, target), target)
            + traffic(w, nbytes, target)
            + costs.fork(min(pieces, target.cores))
        )

    def pack(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        panels = ColumnPanels.from_dense(filters(workload, weights[0]), params["outputs"])
        shares = equal_shares(panels.pointers, params["pieces"])
        columns = panels.columns.astype(column_dtype(workload.k))
        return [panels.values, columns, panels.pointers, shares]

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target))


def _legal_panels(w: MatmulWorkload, target: CpuTarget) -> tuple[int, ...]:
    """Outputs of a panel whose accumulators fit the registers; no panel is twice as long as n."""
    rows = fold_batch(w).m
    return tuple(
        size
        for size in _PANELS
        if (rows + 1) * -(-size // target.lanes) + 1 <= target.registers
        and (size < 2 * w.n or size == _PANELS[0])
    )


def _emit(w: MatmulWorkload, params: Params, target: CpuTarget) -> None:
    """Declare the arguments and emit the parallel tasks."""
    f, size, pieces = fold_batch(w), params["outputs"], params["pieces"]
    panels, lanes = -(-w.n // size), min(size, target.lanes)
    vectors = size // lanes
    kept = tirx.Var("kept", "int32")

    left = emit.argument("left", w.lhs_shape)
    values = emit.argument("values", (kept, size))
    columns = emit.argument("columns", (kept,), column_dtype(w.k))
    pointers = emit.argument("pointers", (panels + 1,), "int32")
    shares = emit.argument("shares", (pieces + 1,), "int32")
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    left = emit.view(left, (prod(w.lhs_shape),))
    out = emit.view(out, (prod(w.out_shape),))
    finish = rowwise_epilogue(w.epilogue, operands, w.out.shape)

    def add(acc: emit.RegisterTile, j: Any) -> None:
        column = emit.hold(T.cast(columns[j], "int32"))
        acc.multiply_add(
            lambda row: left[f.lhs.index((row, column))],
            lambda c, lane: values[j, c * lanes + lane],
        )

    with emit.parallel_tasks(pieces) as (piece,), pointer_run(shares, piece) as panel:
        sums = [emit.RegisterTile(f.m, vectors, lanes) for _ in range(side_by_side(f.m * vectors))]
        for acc in sums:
            acc.zero()
        sum_columns(pointers, panel, sums, add)
        # The rest of a panel that is longer than what is left of the outputs isn't stored.
        line = emit.workspace((f.m, size))
        sums[0].each(
            lambda row, c, lane: T.buffer_store(
                line, sum(acc.get(row, c, lane) for acc in sums), [row, c * lanes + lane]
            )
        )

        def store(column: Any, width: int) -> None:
            with emit.loop(f.m) as row, emit.loop(width, "vectorized") as lane:
                value = finish(row, column + lane, line[row, column - panel * size + lane])
                T.buffer_store(out, value, [f.out.index((row, column + lane))])

        each_vector(panel, size, w.n, target.lanes, store)
