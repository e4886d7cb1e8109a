"""The kernel of attention: two products and the softmax between them, block by block of rows.

A task packs the keys and the values of its batch element, and then goes through its rows: the
scores of a block of rows are made, turned into powers and multiplied with the values while they
are in cache. The sums of the powers divide the result, which is smaller than the scores, as in
Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness" (2022).
Whole rows of scores fit the cache of a CPU, and so nothing has to be rescaled here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit, gemm
from tvm_ext.schedules.attention_cuts import Cuts
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.normalize_rows import RowLoops, softmax_sum
from tvm_ext.schedules.panel_copy import copy_panel, copy_way, readable
from tvm_ext.schedules.strided_product import PanelOf
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.window import unflatten

# Of a row among all of the batch's, a column and the result there.
Finish = Callable[[Any, Any, tirx.Expr], tirx.Expr]


def emit_attention(w: MatmulWorkload, c: Cuts) -> None:
    """Declare the arguments and emit the parallel tasks."""
    inner = w.producer.producer
    queries = emit.argument("queries", inner.lhs_shape)
    keys = emit.argument("keys", inner.rhs_shape)
    values = emit.argument("values", w.rhs_shape)
    score_operands = declare_operands(inner.epilogue, 0)
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    masked = rowwise_epilogue(inner.epilogue, score_operands, inner.out.shape)
    finish = rowwise_epilogue(w.epilogue, operands, w.out.shape)
    with emit.parallel_tasks(prod(w.batch), c.tasks) as (batch, task):
        key_panels = _panels(inner.rhs, c.scores, c.copy_keys, _Matrix(keys, inner.rhs, batch))
        value_panels = _panels(w.rhs, c.result, c.copy_values, _Matrix(values, w.rhs, batch))
        scores = emit.spread_rows(c.rows, c.padded)
        inverses = emit.workspace((c.rows,))
        left, stored = _Matrix(queries, inner.lhs, batch), _Matrix(out, w.out, batch)
        with emit.loop(c.task_blocks) as turn:
            # A task past the end computes the last block again.
            block = tirx.min(task * c.task_blocks + turn, c.row_blocks - 1)
            first = T.Bind(cuts.panel_start(block, c.rows, w.m))
            row0 = T.Bind(batch * w.m + first)
            _emit_scores(c, scores, left, first, key_panels, lambda r, *x: masked(row0 + r, *x))
            _emit_powers(w, c, scores, inverses)

            def store(row: Any, column0: Any, v: Any, i: Any, value: tirx.Expr) -> None:
                column = column0 + v * c.result.lanes + i
                value = finish(row0 + row, column, value * inverses[row])
                stored.set(first + row, column, value)

            gemm.emit_task(c.result, 0, 0, lambda row, step: scores[row, step], value_panels, store)


class _Matrix:
    """One batch element of a view."""

    def __init__(self, buffer: Any, view: StridedView, batch: Any) -> None:
        *lead, rows, columns = view.shape
        self._flat = emit.view(buffer, (prod(int(n) for n in buffer.shape),))
        place = StridedView((*lead, 1, 1), view.strides, view.offset)
        start = place.index((*unflatten(batch, tuple(lead)), 0, 0))
        self._start = start if isinstance(start, int) else T.Bind(start)
        self._view = StridedView((rows, columns), view.strides[-2:])

    @property
    def flat(self) -> Any:
        """The argument's elements in a row."""
        return self._flat

    def at(self, row: Any, column: Any) -> Any:
        """Where an element lies."""
        return self._start + self._view.index((row, column))

    def get(self, row: Any, column: Any) -> tirx.Expr:
        return self._flat[self.at(row, column)]

    def set(self, row: Any, column: Any, value: tirx.Expr) -> None:
        T.buffer_store(self._flat, value, [self.at(row, column)])


def _panels(view: StridedView, b: gemm.Blocking, copy: bool, right: _Matrix) -> PanelOf:
    """Panels of a right side, all of them copied ahead or read in place."""

    def at(panel: Any, step: Any, column: Any) -> Any:
        return right.at(step, cuts.panel_start(panel, b.span, b.n) + column)

    if not copy:
        assert readable(view, b.lanes)
        return lambda panel, _: lambda step, c, i: right.flat[at(panel, step, c * b.lanes + i)]
    local = emit.workspace((b.panels * b.steps, b.blocks, b.lanes))
    if b.n < b.span:
        # The lanes past n are multiplied too: they must hold numbers.
        with emit.loop(b.steps) as step, T.vectorized(0, b.lanes) as i:
            T.buffer_store(local, tirx.const(0.0, "float32"), [step, 0, i])
    with emit.loop(b.panels) as panel:
        copy_panel(
            copy_way(view, b.steps, b.lanes), b, local, right.flat,
            lambda step, column: at(panel, step, column), panel * b.steps,
        )  # fmt: skip
    return lambda panel, _: lambda step, c, i: local[panel * b.steps + step, c, i]


def _emit_scores(
    c: Cuts, scores: Any, queries: _Matrix, first: Any, keys: PanelOf, masked: Finish
) -> None:
    """The scores of a block of rows after their epilogue."""
    b, missing = c.scores, c.padded - c.scores.n
    if missing:
        # Elements that change neither the largest nor the sum make whole vectors. Those of the
        # block before were overwritten with powers.
        lowest = tirx.const(float("-inf"), "float32")
        with emit.loop(c.rows) as row, T.vectorized(0, missing) as i:
            T.buffer_store(scores, lowest, [row, b.n + i])

    def store(row: Any, column0: Any, v: Any, i: Any, value: tirx.Expr) -> None:
        column = column0 + v * b.lanes + i
        T.buffer_store(scores, masked(row, column, value), [row, column])

    gemm.emit_task(b, 0, 0, lambda row, step: queries.get(first + row, step), keys, store)


def _emit_powers(w: MatmulWorkload, c: Cuts, scores: Any, inverses: Any) -> None:
    """Scores to powers, and for each row what the result is multiplied by.

    Steps between the softmax and the second product need the quotients, and leave a factor of 1.
    """
    lanes, steps = c.scores.lanes, w.producer.epilogue
    one = tirx.const(1.0, "float32")
    with emit.loop(c.rows) as row:

        def keep(x: Any, power: tirx.Expr) -> None:
            T.buffer_store(scores, power, [row, x])

        loops = RowLoops(c.padded, lanes, c.vectors)
        _, total = softmax_sum(loops, lambda x: scores[row, x], keep)
        factor = emit.hold(one / total)
        if steps.steps:
            with emit.loop(c.padded // lanes) as v, T.vectorized(0, lanes) as i:
                power = scores[row, v * lanes + i]
                keep(v * lanes + i, steps.evaluate([power * factor], lambda _: power))
            factor = one
        T.buffer_store(inverses, factor, [row])
