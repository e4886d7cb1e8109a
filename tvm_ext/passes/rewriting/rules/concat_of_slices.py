"""Parts of a value put together again."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.axes import Part, concat, concat_axis
from tvm_ext.passes.rewriting.pattern import Fields, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

# A value, and which part of it; no part is all of it.
_Piece = tuple[Any, Part | None]


@register_rule
class ConcatOfSlices(Rule):
    """The slices aren't made, and the whole value may be computed inside the concatenation."""

    name = "concat_of_slices"
    formula = "concat(slice(x, a : b), slice(x, b : c), y) -> concat(slice(x, a : c), y)"
    pattern = Op(
        "concat",
        Fields(Op("strided_slice", Value("x"), name="slice"), "parts"),
        name="concat",
    )

    def refuses(self, match: Match) -> str:
        parts = match["concat"].args[0].fields
        return "" if len(_pieces(match)) < len(parts) else "no two parts are adjacent in a value"

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        axis = concat_axis(match["concat"])
        values = [value if part is None else part.cut(value) for value, part in _pieces(match)]
        bound = [builder.emit(v) if isinstance(v, relax.Call) else v for v in values]
        return concat(bound, axis)


def _pieces(match: Match) -> list[_Piece]:
    """The concatenation's parts, adjacent slices of the same value as one."""
    axis = concat_axis(match["concat"])
    pieces: list[_Piece] = []
    for field, found in zip(match["concat"].args[0].fields, match["parts"], strict=True):
        part = Part.of(found["slice"]) if found is not None else None
        if part is None or part.axis != axis:
            pieces.append((field, None))
            continue
        value, last = pieces[-1] if pieces else (field, None)
        if last is not None and value.same_as(found["x"]) and last.end == part.begin:
            pieces[-1] = (value, Part(axis, last.begin, part.end))
        else:
            pieces.append((found["x"], part))
    return pieces
