"""A transpose of dimensions of one element."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import permutation, reshape
from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class UnitTranspose(Rule):
    """A reshape moves nothing in memory, and meets other reshapes."""

    name = "unit_transpose"
    formula = "transpose(x) that moves only dimensions of 1 -> reshape(x)"
    pattern = Op("permute_dims", Value("x"), name="transpose")

    def refuses(self, match: Match) -> str:
        shape = df.shape_of(match["x"])
        moved = [a for a in permutation(match["transpose"]) if shape[a] != 1]
        return "" if moved == sorted(moved) else "elements move"

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        return reshape(match["x"], df.shape_of(match["transpose"]))
