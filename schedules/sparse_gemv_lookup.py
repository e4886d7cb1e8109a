"""Product of one row with a constant matrix of scattered zeros, whose elements are looked up.

A few columns of the row at a time are a table in two vector registers. Each vector holds
neighbouring outputs, which pick their own columns from the table with one instruction
(`TableLookup`) where a gather takes one load for each. For that every output has the same number of
slots for the columns of a table (`Slots`). What has no slot is gathered (`sparse_product_gather`).

The table's last element is a zero, which unused slots pick, so that what is multiplied with no
weight reaches no result, whatever it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from math import comb, prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, emit, vectors
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.pointer_run import pointer_run
from tvm_ext.schedules.sparse_product_costs import in_seconds, traffic
from tvm_ext.schedules.sparse_product_gather import GatheredSums, gather_cycles
from tvm_ext.schedules.sparse_product_slots import Slots
from tvm_ext.schedules.sparse_product_sorted import SortedPanels
from tvm_ext.schedules.sparse_product_weights import column_dtype, filters, sparse_right_side
from tvm_ext.schedules.table_lookup import TableLookup, table_lookup
from tvm_ext.sparsity import equal_shares
from tvm_ext.sparsity.run_pointers import run_pointers
from tvm_ext.target import CpuTarget

_MOST_SLOTS = 12
_PANELS = (1, 2, 4)
# Registers that accumulators leave: the table, a vector of words, one of values and one picked.
_BESIDE = 5
_FMA_LATENCY = 4
# Cycles for a vector of slots, and for a table beside them, by the lanes of vectors.
_SLOT_CYCLES = {8: 1.5, 16: 2.0}
_TABLE_CYCLES = {8: 1.0, 16: 2.0}


@register
class SparseGemvLookup(Algorithm[MatmulWorkload]):
    """Panels of a vector of outputs.

    Parameters of the plan: `slots` of an output for each table; `panels` that share a table while
    it is in registers; `pieces` parts of the outputs, the units of work of the threads.
    """

    name: ClassVar[str] = "sparse_gemv_lookup"
    workload_type: ClassVar[type] = MatmulWorkload
    storage: ClassVar[str] = "csr"

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        if table_lookup(target) is None:
            return refuse(f"{target.isa} has no lookup of 32-bit lanes; only avx2 and avx512")
        if (rows := fold_batch(workload).m) > 1:
            return refuse(f"{rows} rows; only 1")
        return sparse_right_side(workload)

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        most = target.registers - _BESIDE
        groups = -(-workload.n // (_PANELS[-1] * target.lanes))
        return {
            "slots": tuple(range(1, min(_MOST_SLOTS, most) + 1)),
            "panels": tuple(p for p in _PANELS if p <= most),
            "pieces": tuple(range(1, groups + 1)),
        }

    def check(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> str:
        problem = super().check(workload, params, target)
        sums, most = params.get("slots", 0) * params.get("panels", 0), target.registers - _BESIDE
        if problem or sums <= most:
            return problem
        return f"{self.name}: slots x panels = {sums}; at most {most}, the registers for sums"

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        options = self._options(workload, target)
        return min(options, key=lambda params: self.cost(workload, params, target))

    def _options(self, w: MatmulWorkload, target: CpuTarget) -> Iterator[dict[str, Any]]:
        space = self.space(w, target)
        for slots in space["slots"]:
            # The fewest panels whose sums don't wait for one another.
            fit = [p for p in space["panels"] if p * slots <= target.registers - _BESIDE]
            panels = next((p for p in fit if p * slots >= _FMA_LATENCY), fit[-1])
            for pieces in costs.piece_counts(space["pieces"][-1], target):
                yield {"slots": slots, "panels": panels, "pieces": pieces}

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        w, b = workload, _Blocking(workload, params, target)
        lookup, cores = b.lookup, costs.busy_cores(b.pieces, target)
        vectors_of_sums = b.groups * b.together
        rest = w.sparsity.nonzeros * _share_beyond(b.lookup.size - 1, w.sparsity.density, b.slots)
        slot, table = _SLOT_CYCLES[b.lanes], _TABLE_CYCLES[b.lanes]
        cycles = vectors_of_sums * b.segments * (slot * b.slots + table)
        cycles += gather_cycles(rest + 0.5 * target.lanes * vectors_of_sums, vectors_of_sums)
        stored = vectors_of_sums * b.segments * (b.slots + lookup.words(b.slots)) * 4 * b.lanes
        nbytes = stored + rest * (4 + np.dtype(column_dtype(w.k)).itemsize)
        return (
            in_seconds(cycles / cores, target)
            + traffic(w, nbytes, target)
            + costs.fork(min(b.pieces, target.cores))
        )

    def pack(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        b = _Blocking(workload, params, target)
        matrix = filters(workload, weights[0])
        padded = np.pad(matrix, [(0, b.groups * b.rows - workload.n), (0, 0)])
        slots = Slots.from_dense(padded, b.lookup.size - 1, b.slots)
        by_panel = (b.groups, b.together, b.lanes, b.segments, b.slots)
        # (groups, segments, panels, slots, outputs)
        values = slots.values.reshape(by_panel).transpose(0, 3, 1, 4, 2)
        places = slots.places.reshape(by_panel).transpose(0, 3, 1, 4, 2)
        words = b.lookup.pack(places)

        # A slot takes the time of some gathered weights, used or not.
        work = np.count_nonzero(slots.rest.reshape(b.groups, -1), axis=1)
        work += round(_SLOT_CYCLES[b.lanes] * b.segments * b.together * b.slots)
        shares = equal_shares(run_pointers(work), b.pieces)
        rest = SortedPanels.from_dense(
            slots.rest[: workload.n], b.lanes, np.minimum(shares * b.together, b.panels)
        )
        return [np.ascontiguousarray(values), words, shares, *b.sums.pack(rest)]

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        b = _Blocking(workload, params, target)
        return emit.build(lambda: _emit(workload, b))


class _Blocking:
    """How the outputs and columns are cut."""

    def __init__(self, w: MatmulWorkload, params: Params, target: CpuTarget) -> None:
        lookup = table_lookup(target)
        assert lookup is not None
        self.lookup: TableLookup = lookup
        self.lanes, self.slots = lookup.lanes, params["slots"]
        self.together, self.pieces = params["panels"], params["pieces"]
        self.rows = self.together * self.lanes
        self.groups, self.panels = -(-w.n // self.rows), -(-w.n // self.lanes)
        self.segments = -(-w.k // (lookup.size - 1))
        self.sums = GatheredSums(w.n, w.k, self.lanes, self.panels, self.pieces)


def _share_beyond(width: int, density: float, slots: int) -> float:
    """The share of nonzeros without a slot, as if they lay evenly: the binomial distribution."""
    beyond = sum(
        (count - slots) * comb(width, count) * density**count * (1 - density) ** (width - count)
        for count in range(slots + 1, width + 1)
    )
    return beyond / (width * density) if density else 0.0


def _emit(w: MatmulWorkload, b: _Blocking) -> None:
    """Declare the arguments and emit the parallel tasks."""
    f, lanes, width = fold_batch(w), b.lanes, b.lookup.size - 1
    left = emit.argument("left", w.lhs_shape)
    values = emit.argument("slots", (b.groups, b.segments, b.together, b.slots, lanes))
    words = emit.argument(
        "words", (b.groups, b.segments, b.together, b.lookup.words(b.slots), lanes), "uint32"
    )
    groups = emit.argument("groups", (b.pieces + 1,), "int32")
    b.sums.declare()
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    left = emit.view(left, (prod(w.lhs_shape),))
    out = emit.view(out, (prod(w.out_shape),))
    b.sums.view()
    finish = rowwise_epilogue(w.epilogue, operands, w.out.shape)

    def row(column: Any) -> tirx.Expr:
        return left[f.lhs.index((0, column))]

    def tables() -> Any:
        """The row in tables with a zero at the end of each, and zeros after the last column."""
        table = emit.workspace((b.segments, width + 1))
        whole, rest = divmod(w.k, width)
        zero = tirx.const(0.0, "float32")
        with emit.loop(whole) as s:
            _copy(table, s, width, lanes, lambda i: row(s * width + i))
            T.buffer_store(table, zero, [s, width])
        if rest:
            _copy(table, whole, width + 1, lanes, lambda i: zero)
            _copy(table, whole, rest, lanes, lambda i: row(whole * width + i))
        return table

    def sum_group(table: Any, line: Any, group: Any) -> None:
        zero = vectors.constant(0.0, "float32", lanes)
        sums = [
            [T.alloc_buffer((lanes,), "float32", scope="global") for _ in range(b.slots)]
            for _ in range(b.together)
        ]
        for total in itertools.chain(*sums):
            vectors.store(total, zero, [0], lanes)
        with T.serial(0, b.segments) as s:
            halves = [
                vectors.hold(vectors.load(table, [s, at], lanes), "float32", lanes)
                for at in (0, lanes)
            ]
            for p, panel in enumerate(sums):
                for i, total in enumerate(panel):
                    word, place = divmod(i, b.lookup.per_word)
                    if place == 0:
                        held = vectors.hold(
                            vectors.load(words, [group, s, p, word, 0], lanes), "uint32", lanes
                        )
                    picked = b.lookup.pick(halves, held, place)
                    value = vectors.load(values, [group, s, p, i, 0], lanes)
                    added = vectors.load(total, [0], lanes) + picked * value
                    vectors.store(total, added, [0], lanes)
        for p, panel in enumerate(sums):
            terms = [vectors.load(total, [0], lanes) for total in panel]
            vectors.store(line, _tree_sum(terms), [(group * b.together + p) * lanes], lanes)

    with emit.parallel_tasks(b.pieces) as (piece,):
        line = emit.workspace((b.groups * b.rows,))
        table = tables()
        with pointer_run(groups, piece) as group:
            sum_group(table, line, T.Bind(tirx.Cast("int32", group)))
        beyond = b.sums.task(piece, row)
        b.sums.store(
            piece, lanes, out, lambda at: f.out.index((0, at)),
            lambda at: finish(0, at, line[at] + beyond(at)),
        )  # fmt: skip


def _copy(table: Any, s: Any, count: int, lanes: int, element: Callable[[Any], tirx.Expr]) -> None:
    """Store the first elements of one table."""

    def run(at: Any, n: int) -> None:
        with emit.loop(n, "vectorized") as lane:
            T.buffer_store(table, element(at + lane), [s, at + lane])

    emit.cover(count, lanes, run)


def _tree_sum(terms: list[tirx.Expr]) -> tirx.Expr:
    """The sum, of neighbours first."""
    while len(terms) > 1:
        terms = [sum(terms[i + 1 : i + 2], terms[i]) for i in range(0, len(terms), 2)]
    return terms[0]
