"""The transform steps of a record as it has them, of the form that each kind has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from tvm_ext.errors import RecordError
from tvm_ext.transfer.ansor_step_types import STEPS
from tvm_ext.transfer.json_line import is_int, is_ints

_LETTERS = {"int": "i", "bool": "i", "Annotation": "i", "tuple[int, ...]": "L", "str": "s"}

STEP_FIELDS = MappingProxyType(
    {
        kind: "".join(_LETTERS[f.metadata.get("written_as", f.type)] for f in fields(step))
        for kind, step in STEPS.items()
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
