"""A part of a concatenation."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import Part, concat_axis
from tvm_ext.passes.rewriting.pattern import Fields, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class SliceOfConcat(Rule):
    """The part is read where it comes from; the rest may not be needed at all."""

    name = "slice_of_concat"
    formula = "slice(concat(a, b, ...)) -> a, or a slice of it"
    pattern = Op(
        "strided_slice", Op("concat", Fields(Value("x"), "parts"), name="concat"), name="slice"
    )

    def refuses(self, match: Match) -> str:
        part = Part.of(match["slice"])
        if part is None:
            return "the slice isn't one run of one axis"
        if part.axis != concat_axis(match["concat"]):
            return "the slice cuts another axis"
        return "" if _source(match, part) is not None else "the slice is of several parts"

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        part = Part.of(match["slice"])
        assert part is not None
        source = _source(match, part)
        assert source is not None
        value, begin = source
        return Part(part.axis, part.begin - begin, part.end - begin).cut(value)


def _source(match: Match, part: Part) -> tuple[Any, int] | None:
    """The value in which the whole part lies, and where that begins."""
    values = match["concat"].args[0].fields
    ends = accumulate((df.shape_of(v)[part.axis] for v in values), initial=0)
    for value, (begin, end) in zip(values, pairwise(ends), strict=True):
        if begin <= part.begin and part.end <= end:
            return value, begin
    return None
