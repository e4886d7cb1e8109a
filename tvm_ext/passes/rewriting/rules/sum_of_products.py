"""A sum over products with a factor that is the same along the summed axes."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import reduced_axes
from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class SumOfProducts(Rule):
    """One multiplication an output instead of one an input."""

    name = "sum_of_products"
    formula = "sum(x * c, axes) -> sum(x, axes) * c, mean alike, c broadcast along the axes"
    tolerance = 1e-5
    fast_math = True  # a sum may overflow where that of the products doesn't
    pattern = Op("sum|mean", Op("multiply", Value("x"), Value("c")), name="sum")

    def refuses(self, match: Match) -> str:
        x, c = df.shape_of(match["x"]), df.shape_of(match["c"])
        if not df.dtype_of(match["x"]).startswith("float"):
            return f"dtype {df.dtype_of(match['x'])}"
        if len(c) > len(x) or any(d not in (1, e) for d, e in zip(c[::-1], x[::-1], strict=False)):
            return "x itself is broadcast"
        axes = reduced_axes(match["sum"])
        if any(((1,) * (len(x) - len(c)) + c)[a] != 1 for a in axes):
            return "the factor varies along the summed axes"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        attrs, c = match["sum"].attrs, match["c"]
        rank = len(df.shape_of(match["x"]))
        operator = relax.op.sum if df.op_name(root) == "relax.sum" else relax.op.mean
        total = builder.emit(operator(match["x"], attrs.axis, attrs.keepdims))
        if not attrs.keepdims:
            lead = rank - len(df.shape_of(c))
            gone = [a - lead for a in reduced_axes(root) if a >= lead]
            if gone:
                c = builder.emit(relax.op.squeeze(c, gone))
        return relax.op.multiply(total, c)
