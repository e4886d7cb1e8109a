"""A value and a product with it."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_A = Value("a")


@register_rule
class DistributiveOne(Rule):
    """An addition to b, which is broadcast or constant, instead of one to the whole product."""

    name = "distributive_one"
    formula = "a + a * b -> a * (b + 1)"
    tolerance = 1e-6
    fast_math = True  # an infinite a with b = -1, or cancellation
    pattern = Op("add", _A, Op("multiply", _A, Value("b")))

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        one = relax.const(1, df.dtype_of(match["b"]))
        return relax.op.multiply(match["a"], builder.emit(relax.op.add(match["b"], one)))
