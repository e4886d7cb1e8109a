"""Operators that change nothing the second time."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Either, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_TWICE = ("nn.relu", "abs", "floor", "ceil", "round", "trunc", "sign")


@register_rule
class Idempotent(Rule):
    """One operator instead of two; a sign changed twice is as it was."""

    name = "idempotent"
    formula = "f(f(x)) -> f(x) for relu, abs, sign and rounding; -(-x) -> x"
    pattern = Either(
        *(Op(name, Op(name, Value("x")), name="once") for name in _TWICE),
        Op("negative", Op("negative", Value("x"))),
    )

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        if "once" not in match.named:
            return match["x"]
        return relax.Call(root.op, [match["x"]], root.attrs, root.ty_args)
