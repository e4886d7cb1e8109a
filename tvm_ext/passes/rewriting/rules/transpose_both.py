"""Two operands transposed alike."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import permutation, transpose
from tvm_ext.passes.rewriting.pattern import BINARY, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class TransposeBoth(Rule):
    """One transpose instead of two, and the operator follows those that made its operands."""

    name = "transpose_both"
    formula = "f(transpose(a, p), transpose(b, p)) -> transpose(f(a, b), p)"
    pattern = Op(
        BINARY,
        Op("permute_dims", Value("a"), name="left"),
        Op("permute_dims", Value("b"), name="right"),
        name="f",
    )

    def refuses(self, match: Match) -> str:
        if permutation(match["left"]) != permutation(match["right"]):
            return "the transposes differ"
        if df.shape_of(match["a"]) != df.shape_of(match["b"]):
            return "an operand is broadcast"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        f = match["f"]
        both = builder.emit(relax.Call(f.op, [match["a"], match["b"]], f.attrs, f.ty_args))
        return transpose(both, permutation(match["left"]))
