"""A reciprocal times that of a product with the same value."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Match, Number, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_A = Value("a")
_ONE = Number("one", 1.0)


@register_rule
class ReciprocalProduct(Rule):
    """The product a * b isn't made, and a is inverted once."""

    name = "reciprocal_product"
    formula = "(1 / a) * (1 / (a * b)) -> (1 / a)^2 * (1 / b)"
    tolerance = 1e-6
    fast_math = True  # a * b may overflow where the parts don't
    pattern = Op(
        "multiply",
        Op("divide", _ONE, _A),
        Op("divide", _ONE, Op("multiply", _A, Value("b"))),
    )

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        inverse = builder.emit(relax.op.divide(match["one"], match["a"]))
        square = builder.emit(relax.op.multiply(inverse, inverse))
        return relax.op.divide(square, match["b"])
