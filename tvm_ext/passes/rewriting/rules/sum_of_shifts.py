"""A sum over numbers shifted alike."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Match, Number, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class SumOfShifts(Rule):
    """One shift an output instead of one an input; exact, as both wrap around alike."""

    name = "sum_of_shifts"
    formula = "sum(x << k, axes) -> sum(x, axes) << k"
    pattern = Op("sum", Op("left_shift", Value("x"), Number("k")), name="sum")

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        attrs = match["sum"].attrs
        total = builder.emit(relax.op.sum(match["x"], attrs.axis, attrs.keepdims))
        return relax.op.left_shift(total, match["k"])
