"""Absolute values of two factors."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Match, Op, Value, product
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class AbsProduct(Rule):
    """One absolute value instead of two."""

    name = "abs_product"
    formula = "abs(a) * b * abs(c) -> abs(a * c) * b"
    tolerance = 1e-6
    fast_math = True  # a * c may overflow where abs(a) * b * abs(c) doesn't
    pattern = product(Op("abs", Value("a")), Value("b"), Op("abs", Value("c")))

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        both = builder.emit(relax.op.multiply(match["a"], match["c"]))
        return relax.op.multiply(builder.emit(relax.op.abs(both)), match["b"])
