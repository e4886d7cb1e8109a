"""Rows flattened for a product and unfolded after it."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.pattern import VIEWS, Either, Match, Op, Value, Weights
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_PRODUCT = Op("matmul", Op(VIEWS, Value("x")), Weights("w"), name="matmul")


@register_rule
class ReshapeAcrossMatmul(Rule):
    """A product takes rows of any shape: what follows, such as a residual, can join it."""

    name = "reshape_across_matmul"
    formula = "reshape(reshape(x) @ w + b) -> x @ w + b, where the reshapes undo each other"
    pattern = Either(
        Op(VIEWS, _PRODUCT, name="outer"),
        Op(VIEWS, Op("add", _PRODUCT, Weights("bias")), name="outer"),
    )

    def refuses(self, match: Match) -> str:
        x, w = df.shape_of(match["x"]), df.shape_of(match["w"])
        if len(w) != 2:
            return f"weights of {len(w)} dimensions"
        if not x or (*x[:-1], w[1]) != df.shape_of(match["outer"]) or x[-1] != w[0]:
            return "the second reshape doesn't undo the first"
        if "bias" in match.named and match.array("bias").size not in (1, w[1]):
            return "the bias varies along the rows"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        product = relax.op.matmul(match["x"], match["w"], match["matmul"].attrs.out_dtype)
        if "bias" not in match.named:
            return product
        bias = df.constant(match.array("bias").reshape(-1))
        return relax.op.add(builder.emit(product), bias)
