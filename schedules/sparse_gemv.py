"""Product of one row with a constant matrix of scattered zeros.

Vectors hold neighbouring outputs, and each has columns of its own (`SortedPanels`), so what is
multiplied has to be gathered from the row. Gather instructions are no faster than the loads that
they stand for, and slower where processors were patched against leaks through them. So vectors of
four lanes are put together, lane by lane. Columns are two bytes each where that is enough, as the
bytes of weights and columns bind large layers; four of them are read as one number and taken apart
by shifts, because reading each would be half of all loads.

What is stored as a zero, to fill panels, is multiplied as any other weight.
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
from tvm_ext.schedules.sparse_product_costs import in_seconds, traffic
from tvm_ext.schedules.sparse_product_sorted import SortedPanels
from tvm_ext.schedules.sparse_product_store import each_vector
from tvm_ext.schedules.sparse_product_weights import column_dtype, filters, sparse_right_side
from tvm_ext.target import CpuTarget

# Lanes that one vector gathers, whatever the target's vectors are.
_LANES = 4
_ROWS = (4, 8, 16)
_WORD_BITS = 64
# Cycles that a nonzero takes, and a panel beside them.
_GATHER_CYCLES = 0.85
_PANEL_CYCLES = 25.0


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
            for pieces in sorted({1, min(target.cores, space["pieces"][-1])})
        ]
        return min(options, key=lambda params: self.cost(workload, params, target))

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        w, cores = workload, costs.busy_cores(params["pieces"], target)
        panels = -(-w.n // params["outputs"])
        # The longest row of a sorted panel has little more than the mean.
        stored = w.sparsity.nonzeros + 0.5 * params["outputs"] * panels
        cycles = _GATHER_CYCLES * stored + _PANEL_CYCLES * panels
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
        panels = SortedPanels.from_dense(matrix, params["outputs"], params["pieces"])
        columns = panels.columns.astype(column_dtype(workload.k))
        return [panels.values, columns, panels.pointers, panels.places, panels.shares]

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
    f, dtype = fold_batch(w), column_dtype(w.k)
    size, pieces = params["outputs"], params["pieces"]
    panels, bits = -(-w.n // size), 8 * np.dtype(dtype).itemsize
    steps = tirx.Var("steps", "int32")

    left = emit.argument("left", w.lhs_shape)
    values = emit.argument("values", (steps, size))
    columns = emit.argument("columns", (steps, size), dtype)
    pointers = emit.argument("pointers", (panels + 1,), "int32")
    places = emit.argument("places", (w.n,), "int32")
    shares = emit.argument("shares", (pieces + 1,), "int32")
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    left = emit.view(left, (prod(w.lhs_shape),))
    out = emit.view(out, (prod(w.out_shape),))
    words = emit.view(columns, (steps, size * bits // _WORD_BITS), "uint64")
    finish = rowwise_epilogue(w.epilogue, operands, w.out.shape)

    def gather(step: Any, first: int) -> Any:
        """What the columns of the outputs from `first` on find in the row."""
        vector = T.alloc_buffer((_LANES,), "float32", scope="global")
        for lane in range(_LANES):
            word, shift = divmod((first + lane) * bits, _WORD_BITS)
            if lane == 0 or shift == 0:
                held = emit.hold(words[step, word])
            column = (held >> tirx.const(shift, "uint64")) & tirx.const((1 << bits) - 1, "uint64")
            T.buffer_store(vector, left[f.lhs.index((0, T.cast(column, "int32")))], [lane])
        return vector

    with emit.parallel_tasks(pieces) as (piece,):
        line = emit.workspace((panels * size,))

        def store(column: Any, lanes: int) -> None:
            with emit.loop(lanes, "vectorized") as lane:
                value = finish(0, column + lane, line[places[column + lane]])
                T.buffer_store(out, value, [f.out.index((0, column + lane))])

        with pointer_run(shares, piece) as panel:
            sums = [emit.RegisterTile(1, 1, _LANES) for _ in range(0, size, _LANES)]
            for acc in sums:
                acc.zero()
            with pointer_run(pointers, panel) as step:
                for first, acc in zip(range(0, size, _LANES), sums, strict=True):
                    vector = gather(step, first)
                    acc.fill(
                        lambda r, c, lane, acc=acc, first=first, vector=vector: (
                            acc.get(r, c, lane) + values[step, first + lane] * vector[lane]
                        )
                    )
            for first, acc in zip(range(0, size, _LANES), sums, strict=True):
                acc.each(
                    lambda r, c, lane, acc=acc, first=first: T.buffer_store(
                        line, acc.get(r, c, lane), [panel * size + first + lane]
                    )
                )
        with pointer_run(shares, piece) as panel:
            each_vector(panel, size, w.n, target.lanes, store)
