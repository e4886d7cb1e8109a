"""A reshape moved across a One-to-One operator, to meet another."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import reshape
from tvm_ext.passes.rewriting.pattern import VIEWS, Match, Op, Value, one_to_one
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_INNER = Op(VIEWS, Value("x"), name="inner")


@register_rule
class ReshapeAcross(Rule):
    """Elementwise operators don't mind dimensions: they follow what made x, and can join it."""

    name = "reshape_across"
    formula = "reshape(f(reshape(x))) -> reshape(f(x))"
    pattern = Op(VIEWS, one_to_one(_INNER), name="outer")

    def refuses(self, match: Match) -> str:
        if "c" not in match.named:
            return ""
        x, c = df.shape_of(match["x"]), _plain(match)
        middle = df.shape_of(match["inner"])
        # As many trailing dimensions as the constant has must be the same ones before and after.
        if df.shape_of(match["f"]) != middle or (c and x[-len(c) :] != middle[-len(c) :]):
            return f"the constant of shape {c} varies along dimensions that change"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        f, x = match["f"], match["x"]
        args = list(f.args)
        if "c" in match.named:
            c = df.constant(match.array("c").reshape(_plain(match)))
            args = [c if df.value_of(a) is not None else x for a in args]
        else:
            args[0] = x
        moved = builder.emit(relax.Call(f.op, args, f.attrs, f.ty_args))
        return reshape(moved, df.shape_of(match["outer"]))


def _plain(match: Match) -> tuple[int, ...]:
    """The constant's shape without leading ones."""
    shape = list(df.shape_of(match["c"]))
    while shape and shape[0] == 1:
        del shape[0]
    return tuple(shape)
