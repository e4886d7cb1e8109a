"""A transpose of a part of a transpose."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.axes import Part, permutation, transpose
from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class TransposeOverSlice(Rule):
    """The part is cut where it comes from; what is left is one transpose of it, or none."""

    name = "transpose_over_slice"
    formula = "transpose(slice(transpose(x, p)), q) -> transpose(slice(x), p[q])"
    pattern = Op(
        "permute_dims",
        Op("strided_slice", Op("permute_dims", Value("x"), name="inner"), name="slice"),
        name="outer",
    )

    def refuses(self, match: Match) -> str:
        return "" if Part.of(match["slice"]) else "the slice isn't one run of one axis"

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        inner, part = permutation(match["inner"]), Part.of(match["slice"])
        assert part is not None
        cut = Part(inner[part.axis], part.begin, part.end).cut(match["x"])
        value = builder.emit(cut) if isinstance(cut, relax.Call) else cut
        return transpose(value, [inner[a] for a in permutation(match["outer"])])
