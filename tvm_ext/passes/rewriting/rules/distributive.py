"""Products with a common factor."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_A = Value("a")


@register_rule
class Distributive(Rule):
    """One multiplication instead of two."""

    name = "distributive"
    formula = "a * b + a * c -> a * (b + c)"
    tolerance = 1e-6
    fast_math = True  # infinite or cancelling products
    pattern = Op("add", Op("multiply", _A, Value("b")), Op("multiply", _A, Value("c")))

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        total = builder.emit(relax.op.add(match["b"], match["c"]))
        return relax.op.multiply(match["a"], total)
