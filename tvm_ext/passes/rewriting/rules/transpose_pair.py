"""Two transposes in a row."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.axes import permutation, transpose
from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class TransposePair(Rule):
    """One transpose, or none, does what two did."""

    name = "transpose_pair"
    formula = "transpose(transpose(x, p), q) -> transpose(x, p[q])"
    pattern = Op("permute_dims", Op("permute_dims", Value("x"), name="inner"), name="outer")

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        inner, outer = permutation(match["inner"]), permutation(match["outer"])
        return transpose(match["x"], [inner[a] for a in outer])
