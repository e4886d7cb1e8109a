"""A concatenation in another."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.axes import concat_axis
from tvm_ext.passes.rewriting.pattern import Fields, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class ConcatOfConcat(Rule):
    """The inner one isn't made."""

    name = "concat_of_concat"
    formula = "concat(concat(a, b), c) -> concat(a, b, c)"
    pattern = Op(
        "concat",
        Fields(Op("concat", Fields(Value("x"), "fields"), name="inner"), "parts"),
        name="concat",
    )

    def refuses(self, match: Match) -> str:
        axis = concat_axis(match["concat"])
        found = [m for m in match["parts"] if m is not None]
        if any(concat_axis(m["inner"]) != axis for m in found):
            return "the axes differ"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        parts: list[Any] = []
        for field, found in zip(match["concat"].args[0].fields, match["parts"], strict=True):
            parts += [field] if found is None else list(found["inner"].args[0].fields)
        return relax.op.concat(parts, concat_axis(match["concat"]))
