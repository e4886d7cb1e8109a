"""A transpose moved across a One-to-One operator, to meet another."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import permutation, transpose
from tvm_ext.passes.rewriting.pattern import Match, Op, Value, one_to_one
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_INNER = Op("permute_dims", Value("x"), name="inner")


@register_rule
class TransposeAcross(Rule):
    """Elementwise operators don't mind the order of elements; constants are turned now."""

    name = "transpose_across"
    formula = "transpose(f(transpose(x, p)), q) -> transpose(f(x), p[q])"
    pattern = Op("permute_dims", one_to_one(_INNER), name="outer")

    def refuses(self, match: Match) -> str:
        if df.shape_of(match["f"]) != df.shape_of(match["inner"]):
            return "the constant broadcasts x"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        f, x = match["f"], match["x"]
        inner, outer = permutation(match["inner"]), permutation(match["outer"])
        args = list(f.args)
        if "c" in match.named:
            c = match.array("c")
            c = c.reshape((1,) * (len(inner) - c.ndim) + c.shape).transpose(np.argsort(inner))
            args = [df.constant(c) if df.value_of(a) is not None else x for a in args]
        else:
            args[0] = x
        moved = relax.Call(f.op, args, f.attrs, f.ty_args)
        return transpose(builder.emit(moved), [inner[a] for a in outer])
