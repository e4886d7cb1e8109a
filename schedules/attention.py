"""Attention as one kernel: softmax(queries keys^T) values, whose scores stay in cache."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from tvm import tirx

from tvm_ext.schedules import emit, gemm_cuts
from tvm_ext.schedules.attention_cuts import Cuts, best_cuts, seconds
from tvm_ext.schedules.attention_kernel import emit_attention
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.panel_copy import readable
from tvm_ext.schedules.strided_product import has_rows
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.workload import NormalizeWorkload
from tvm_ext.target import CpuTarget

_VECTORS = (1, 2, 4, 8)


@register
class Attention(Algorithm[MatmulWorkload]):
    """A product, the softmax of its rows and the product with that, in blocks of rows.

    Parameters of the plan: `score_tile` rows and `score_blocks` vectors of columns in registers for
    the scores, `tile` and `blocks` for the result; `rows` whose scores are in scratch memory at
    once; `chunks` parts of the rows of one batch element, the units of work of the threads;
    `vectors` of accumulators in a row's reductions; `copy_keys` and `copy_values` copy the right
    sides of a batch element into panels first.
    """

    name: ClassVar[str] = "attention"
    workload_type: ClassVar[type] = MatmulWorkload
    producers: ClassVar[tuple[tuple[type, ...], ...]] = ((NormalizeWorkload, MatmulWorkload),)

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        w, softmax = workload, workload.producer
        inner: MatmulWorkload = softmax.producer
        if w.dtype != "float32" or inner.dtype != "float32":
            return refuse(f"dtypes {inner.dtype} and {w.dtype}; only float32")
        if w.packed or inner.packed:
            return refuse("packed is True; only operands computed at run time")
        if softmax.kind != "softmax":
            return refuse(f"a {softmax.kind} between the products; only softmax")
        if softmax.epilogue.operands:
            return refuse("steps with operands behind the softmax; only ones without")
        if prod(w.out.shape) * w.k * inner.k == 0:
            return refuse(f"result {w.out.shape} of {w.k} scores has no elements")
        return _same_rows(w, softmax, inner) and has_rows(w.out, "result")

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        w, inner = workload, workload.producer.producer
        score = gemm_cuts.panel_tiles(w.m, inner.n, target)
        tiles = gemm_cuts.panel_tiles(w.m, w.n, target)
        return {
            "score_tile": tuple(sorted({t.rows for t in score})),
            "score_blocks": tuple(sorted({t.columns for t in score})),
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "rows": tuple(range(1, w.m + 1)),
            "chunks": tuple(range(1, w.m + 1)),
            "vectors": _VECTORS,
            "copy_keys": _copies(inner.rhs, target),
            "copy_values": _copies(w.rhs, target),
        }

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        return best_cuts(workload, target)

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        return seconds(workload, params, target)

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        cut = Cuts.of(workload, params, target.lanes)
        return emit.build(lambda: emit_attention(workload, cut))


def _copies(view: StridedView, target: CpuTarget) -> tuple[bool, ...]:
    return (False, True) if readable(view, target.lanes) else (True,)


def _same_rows(w: MatmulWorkload, softmax: NormalizeWorkload, inner: MatmulWorkload) -> Support:
    """Whether the rows of scores are those of the second product's left side, in order."""
    if (softmax.rows, softmax.columns) != (prod(inner.out.shape[:-1]), inner.n):
        return refuse(f"a softmax over {softmax.columns} elements of rows of {inner.n}")
    rows = prod(w.batch) * w.m
    if (w.m, w.k) != (inner.m, inner.n) or rows != softmax.rows or w.lhs.offset:
        return refuse(f"scores {inner.out.shape} read as {w.lhs.shape}; only whole and in order")
    if not (w.lhs.is_contiguous and inner.out.is_contiguous):
        return refuse("scores in another order; only row by row")
    return YES
