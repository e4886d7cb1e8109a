"""Two transposes in a row."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


def permutation(call: relax.Call) -> list[int]:
    """The axes of a `permute_dims`; without any it reverses them."""
    rank = len(df.shape_of(call.args[0]))
    axes = call.attrs.axes
    return [int(a) % rank for a in (reversed(range(rank)) if axes is None else axes)]


def transpose(value: Any, axes: list[int]) -> Any:
    """`value` under a permutation, itself where that changes nothing."""
    return value if axes == sorted(axes) else relax.op.permute_dims(value, axes)


@register_rule
class TransposePair(Rule):
    """One transpose, or none, does what two did."""

    name = "transpose_pair"
    formula = "transpose(transpose(x, p), q) -> transpose(x, p[q])"
    pattern = Op("permute_dims", Op("permute_dims", Value("x"), name="inner"), name="outer")

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        inner, outer = permutation(match["inner"]), permutation(match["outer"])
        return transpose(match["x"], [inner[a] for a in outer])
