"""A square minus a product with the same value."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Either, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_S = Op("add", Value("a"), Value("b"), name="sum")


@register_rule
class SquareDifference(Rule):
    """One multiplication instead of two."""

    name = "square_difference"
    formula = "(a + b)^2 - (a + b) * c -> (a + b) * (a + b - c)"
    tolerance = 1e-6
    fast_math = True  # infinities that cancel
    pattern = Op(
        "subtract",
        Either(Op("square", _S), Op("multiply", _S, _S)),
        Op("multiply", _S, Value("c")),
    )

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        total = builder.emit(relax.op.add(match["a"], match["b"]))
        rest = builder.emit(relax.op.subtract(total, match["c"]))
        return relax.op.multiply(total, rest)
