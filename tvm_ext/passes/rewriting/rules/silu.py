"""A sigmoid linear unit (Swish) that was written out."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_X = Value("x")


@register_rule
class Silu(Rule):
    """One step in an epilogue, with one reading of x."""

    name = "silu"
    formula = "x * sigmoid(x) -> silu(x)"
    tolerance = 1e-6
    pattern = Op("multiply", _X, Op("sigmoid", _X))

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        return relax.op.nn.silu(match["x"])
