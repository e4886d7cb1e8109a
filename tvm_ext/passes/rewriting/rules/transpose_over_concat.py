"""A transpose of concatenated transposes."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.axes import concat_axis, permutation, transpose
from tvm_ext.passes.rewriting.pattern import Fields, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class TransposeOverConcat(Rule):
    """The parts stay as they are made; what is left is one transpose, or none."""

    name = "transpose_over_concat"
    formula = (
        "transpose(concat(transpose(a, p), transpose(b, p)), q) -> transpose(concat(a, b), p[q])"
    )
    pattern = Op(
        "permute_dims",
        Op(
            "concat",
            Fields(Op("permute_dims", Value("x"), name="inner"), "parts"),
            name="concat",
        ),
        name="outer",
    )

    def refuses(self, match: Match) -> str:
        if any(part is None for part in match["parts"]):
            return "a part isn't transposed"
        first, *others = (permutation(part["inner"]) for part in match["parts"])
        return "the transposes differ" if any(p != first for p in others) else ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        inner = permutation(match["parts"][0]["inner"])
        axis = inner[concat_axis(match["concat"])]
        whole = builder.emit(relax.op.concat([part["x"] for part in match["parts"]], axis))
        return transpose(whole, [inner[a] for a in permutation(match["outer"])])
