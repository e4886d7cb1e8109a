"""The transform steps that Ansor writes, and the form of each."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from tvm_ext.errors import RecordError
from tvm_ext.transfer.json_line import is_int, is_ints

STEP_FIELDS = MappingProxyType(
    {
        # split: stage, iterator, extent (0 unknown), lengths (0 open), inner to outer
        "SP": "iiiLi",
        # split as another step did: stage, iterator, number of that step, parts
        "FSP": "iiii",
        # split as several fused ones: stage, iterator, numbers of the steps, level, factor or parts
        "FFSP": "iiLii",
        # reorder: stage, iterators
        "RE": "iL",
        # fuse: stage, iterators
        "FU": "iL",
        # annotate: stage, iterator, annotation
        "AN": "iii",
        # pragma: stage, iterator, text
        "PR": "iis",
        # compute at: stage, target stage, target iterator
        "CA": "iii",
        # compute inline: stage
        "CI": "i",
        # compute root: stage
        "CR": "i",
        # cache read: stage, scope, stages that read
        "CHR": "isL",
        # cache write: stage, scope
        "CHW": "is",
        # reduction factor: stage, iterator, position of the factor
        "RF": "iii",
        # storage align: stage, iterator, factor, offset
        "SA": "iiii",
    }
)
"""Of each kind, its fields: i an integer, L a list of integers, s a text."""

_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "i": (is_int, "an integer"),
    "L": (is_ints, "a list of integers"),
    "s": (lambda value: type(value) is str, "a text"),
}


def read_steps(steps: Any) -> tuple[tuple[Any, ...], ...]:
    """Ansor's steps as nested tuples, in order: kind, then its fields.

    Raises
    ------
    RecordError
        No list of steps, a kind that isn't in `STEP_FIELDS`, or fields of another number or type.
    """
    if not isinstance(steps, list):
        raise RecordError("malformed step", "the steps are no list")
    return tuple([_read_step(number, step) for number, step in enumerate(steps)])


def _read_step(number: int, step: Any) -> tuple[Any, ...]:
    if not isinstance(step, list) or not step or not isinstance(step[0], str):
        raise RecordError("malformed step", f"step {number} is no list that starts with its kind")
    kind, *values = step
    fields = STEP_FIELDS.get(kind)
    if fields is None:
        raise RecordError(
            "unknown step kind", f"step {number} is {kind!r}; allowed: {', '.join(STEP_FIELDS)}"
        )
    if len(values) != len(fields):
        raise RecordError(
            "malformed step", f"step {number}, {kind}, has {len(values)} fields, not {len(fields)}"
        )
    for place, (letter, value) in enumerate(zip(fields, values, strict=True), 1):
        fits, name = _CHECKS[letter]
        if not fits(value):
            raise RecordError(
                "malformed step", f"step {number}, {kind}: field {place} isn't {name}"
            )
    return (kind, *(tuple(value) if type(value) is list else value for value in values))
