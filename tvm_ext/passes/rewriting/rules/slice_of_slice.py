"""A part of a part."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.axes import Part
from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class SliceOfSlice(Rule):
    """One slice, which copies no more than the smaller one did."""

    name = "slice_of_slice"
    formula = "slice(slice(x, a : b), c : d) -> slice(x, a + c : a + d)"
    pattern = Op("strided_slice", Op("strided_slice", Value("x"), name="inner"), name="outer")

    def refuses(self, match: Match) -> str:
        inner, outer = Part.of(match["inner"]), Part.of(match["outer"])
        if inner is None or outer is None:
            return "a slice isn't one run of one axis"
        return "" if inner.axis == outer.axis else "the slices cut different axes"

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        inner, outer = Part.of(match["inner"]), Part.of(match["outer"])
        assert inner is not None and outer is not None
        begin, end = inner.begin + outer.begin, inner.begin + outer.end
        return Part(inner.axis, begin, end).cut(match["x"])
