"""Matrix product with a constant right side on AMX, in bfloat16 terms as in `amx_conv`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import amx, costs, cuts, emit
from tvm_ext.schedules.amx_costs import Passes, best_cut
from tvm_ext.schedules.amx_product import (
    DEFAULT_PRODUCTS,
    TOLERANCES,
    Sums,
    TileCut,
    cut_space,
    emit_tasks,
    multiply_panel,
)
from tvm_ext.schedules.base import Algorithm, Params, Support, register
from tvm_ext.schedules.emit import Index
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul import constant_right_side, weight_matrix
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.split_words import pack_panels, store_words
from tvm_ext.target import CpuTarget

_V = amx.LANES


@register
class AmxMatmul(Algorithm[MatmulWorkload]):
    """Left side and output in rows that one stride walks, weights as tiles of bfloat16 terms.

    Parameters of the plan: `tile` rows in a register tile, `down` x `across` such tiles of sums;
    `products` of terms, of two terms each or, for 6, three; `chunk` rows whose words stay in cache
    while all weights pass; `pieces` parts of the columns that threads share, after they have split
    the rows together.
    """

    name: ClassVar[str] = "amx_matmul"
    workload_type: ClassVar[type] = MatmulWorkload
    features: ClassVar[tuple[str, ...]] = amx.FEATURES

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        return amx.supports_amx(target) and constant_right_side(workload)

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {
            **cut_space(_blocks(workload)),
            "chunk": tuple(range(1, fold_batch(workload).m + 1)),
            "pieces": tuple(range(1, -(-workload.n // _V) + 1)),
        }

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        rows, options = fold_batch(workload).m, []
        most = -(-rows // amx.ROWS) * target.cores
        for chunk in sorted({-(-rows // chunks) for chunks in range(1, min(most, rows) + 1)}):
            cut = best_cut(chunk, _blocks(workload), DEFAULT_PRODUCTS)
            for pieces in costs.piece_counts(-(-workload.n // cut.span), target):
                params = {**cut.params, "chunk": chunk, "pieces": pieces}
                options.append((self.cost(workload, params, target), params))
        return min(options, key=lambda option: option[0])[1]

    def check(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> str:
        if wrong := super().check(workload, params, target):
            return wrong
        problem = TileCut.of(params).problem(params["chunk"], _blocks(workload))
        return f"{self.name}: {problem}" if problem else ""

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        w, cut, chunk = workload, TileCut.of(params), params["chunk"]
        passes = Passes(
            cut, bands=-(-fold_batch(w).m // chunk), positions=chunk, staged=chunk,
            groups=-(-w.k // amx.DEPTH), taps=1, panels=-(-w.n // cut.span),
            pieces=params["pieces"], nbytes=w.bytes,
        )  # fmt: skip
        return passes.seconds(target)

    def tolerance(self, workload: MatmulWorkload, params: Params) -> float:
        return TOLERANCES[params["products"]]

    def pack(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        cut = TileCut.of(params)
        panels = cuts.cut_panels(weight_matrix(workload, weights[0]), 1, cut.span, at=0)
        return [pack_panels(panels.reshape(len(panels), 1, -1, cut.across, _V), cut.terms)]

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params))


def _blocks(w: MatmulWorkload) -> int:
    """Vectors of columns that a panel may have; fewer columns than a vector are padded."""
    return max(1, w.n // _V)


def _emit(w: MatmulWorkload, params: Params) -> None:
    """Declare the arguments and emit the loops."""
    f, cut, chunk = fold_batch(w), TileCut.of(params), params["chunk"]
    groups, panels = -(-w.k // amx.DEPTH), -(-w.n // cut.span)
    left = emit.argument("left", w.lhs_shape)
    weight = emit.argument("weight", (panels * groups * cut.step_words,), "int32")
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    left, out = emit.view(left, (prod(w.lhs_shape),)), emit.view(out, (prod(w.out_shape),))
    epilogue = rowwise_epilogue(w.epilogue, operands, w.out.shape)

    def memory() -> Any:
        # An odd number of rows: channels then spread over the sets of a cache.
        return emit.workspace((cut.terms, groups, chunk | 1, _V), "int32")

    def split(_: Index, band: Index, group: Index, staged: Any) -> None:
        first = cuts.panel_start(band, chunk, f.m)
        with emit.loop(chunk) as r:
            _split_row(f, left, first + r, cut.terms, group, staged, r)

    def multiply(_: Index, band: Index, panel: Index, staged: Any) -> None:
        first, column0 = cuts.panel_start(band, chunk, f.m), cuts.panel_start(panel, cut.span, w.n)

        def finish(position: Index, sums: Sums) -> None:
            row = first + position
            for c in range(cut.across):
                with emit.loop(min(_V, w.n), "vectorized" if w.n >= _V else "serial") as lane:
                    column = column0 + c * _V + lane
                    value = epilogue(row, column, sums(c, lane))
                    T.buffer_store(out, value, [f.out.index((row, column))])

        multiply_panel(
            cut, chunk, groups,
            lambda step, term, position: (staged, [term, step, position, 0]),
            weight, panel, finish,
        )  # fmt: skip

    emit_tasks(
        cut, 1, -(-f.m // chunk), groups, panels, min(params["pieces"], panels), memory, split,
        multiply,
    )  # fmt: skip


def _split_row(
    f: MatmulWorkload, left: Any, row: Index, terms: int, group: Index, staged: Any, to: Index
) -> None:
    """Words of `amx.DEPTH` elements of a row; zeros past its end."""
    full, rest = divmod(f.k, amx.DEPTH)

    def split(load: Callable[[Index], tirx.Expr]) -> None:
        store_words(
            load,
            lambda lane: load(_V + lane),
            terms,
            lambda term, lane, word: T.buffer_store(staged, word, [term, group, to, lane]),
        )

    def whole() -> None:
        split(lambda i: left[f.lhs.index((row, group * amx.DEPTH + i))])

    def partly() -> None:
        part = emit.workspace((amx.DEPTH,))
        for i in range(amx.DEPTH):
            place = f.lhs.index((row, full * amx.DEPTH + i))
            T.buffer_store(part, left[place] if i < rest else tirx.const(0.0, "float32"), [i])
        split(lambda i: part[i])

    if not rest:
        whole()
    elif not full:
        partly()
    else:
        with T.If(group < full):
            with T.Then():
                whole()
            with T.Else():
                partly()
