"""A square root twice in a product."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_ROOT = Op("sqrt", Value("b"))


@register_rule
class SqrtProduct(Rule):
    """The root squared is the value."""

    name = "sqrt_product"
    formula = "sqrt(b) * (sqrt(b) * c) -> b * c"
    tolerance = 1e-6
    fast_math = True  # a negative b gave NaN
    pattern = Op("multiply", _ROOT, Op("multiply", _ROOT, Value("c")))

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        return relax.op.multiply(match["b"], match["c"])
