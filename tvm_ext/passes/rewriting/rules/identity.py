"""Operators that change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import permutation
from tvm_ext.passes.rewriting.pattern import VIEWS, Either, Match, Number, Op, Sole, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_X = Value("x")


@register_rule
class Identity(Rule):
    """x + 0 isn't among them: it makes 0.0 of -0.0."""

    name = "identity"
    formula = "x * 1, x / 1, x - 0, cast, reshape, transpose, slice, concat to what x is -> x"
    pattern = Either(
        Op("multiply", _X, Number(value=1.0)),
        Op("divide", _X, Number(value=1.0)),
        Op("subtract", _X, Number("zero", 0.0)),
        Op("astype", _X, name="same"),
        Op("permute_dims", _X, name="transpose"),
        Op("strided_slice", _X, name="slice"),
        Op("broadcast_to|" + VIEWS, _X, name="same"),
        Op("concat", Sole(_X)),
    )

    def refuses(self, match: Match) -> str:
        if "transpose" in match.named:
            axes = permutation(match["transpose"])
            if axes != tuple(sorted(axes)):
                return "the transpose moves axes"
        if "zero" in match.named and np.signbit(match.array("zero")).any():
            return "x - -0.0 makes 0.0 of -0.0"
        if "same" in match.named and _type(match["same"]) != _type(match["x"]):
            return "the type changes"
        if "slice" in match.named and _type(match["slice"]) != _type(match["x"]):
            return "the slice is a part"
        if "slice" in match.named and any(s < 0 for s in _strides(match["slice"])):
            return "the slice goes backwards"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        return match["x"]


def _type(expr: Any) -> tuple[tuple[int, ...], str]:
    return df.shape_of(expr), df.dtype_of(expr)


def _strides(call: relax.Call) -> list[int]:
    """The last argument of a slice, if it has one."""
    return [int(s) for s in call.args[4].fields] if len(call.args) > 4 else []
