"""A product over exponentials."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class ProductOfExponentials(Rule):
    """One exponential an output instead of one an input."""

    name = "product_of_exponentials"
    formula = "prod(exp(x), axes) -> exp(sum(x, axes))"
    tolerance = 1e-5
    fast_math = True  # a partial product may overflow or vanish
    pattern = Op("prod", Op("exp", Value("x")), name="prod")

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        attrs = match["prod"].attrs
        return relax.op.exp(builder.emit(relax.op.sum(match["x"], attrs.axis, attrs.keepdims)))
