"""Pooling of concatenated channels."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.axes import concat_axis
from tvm_ext.passes.rewriting.pattern import Fields, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class PoolOverConcat(Rule):
    """The concatenation moves less, and each pool meets the operator that makes its input."""

    name = "pool_over_concat"
    formula = "pool(concat(a, b)) -> concat(pool(a), pool(b)) along channels"
    pattern = Op(
        "nn.max_pool2d|nn.avg_pool2d",
        Op("concat", Fields(Value("x"), "parts"), name="concat"),
        name="pool",
    )

    def refuses(self, match: Match) -> str:
        if match["pool"].attrs.layout != "NCHW":
            return f"layout {match['pool'].attrs.layout}"
        return "" if concat_axis(match["concat"]) == 1 else "the parts aren't channels"

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        pooled = [
            builder.emit(relax.Call(root.op, [part], root.attrs, root.ty_args))
            for part in match["concat"].args[0].fields
        ]
        return relax.op.concat(pooled, 1)
