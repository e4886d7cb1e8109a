"""The same call twice."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Again, Match
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class CommonSubexpression(Rule):
    """Other rules leave equal calls behind; the later one isn't made."""

    name = "common_subexpression"
    formula = "f(x), f(x) -> one f(x)"
    pattern = Again("x")

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        return match["x"]
