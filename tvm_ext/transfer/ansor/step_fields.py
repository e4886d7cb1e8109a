"""Ansor's transform steps read from a record, every field checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from tvm_ext.transfer.ansor.errors import ReplayError
from tvm_ext.transfer.ansor_step_types import STEPS, Annotation, Step

_UNROLL = "auto_unroll_max_step$"


def _is_int(value: Any) -> bool:
    return type(value) is int


def _count(value: Any) -> int:
    if not _is_int(value) or value < 0:
        raise ValueError("an integer from 0")
    return int(value)


def _positive(value: Any) -> int:
    if not _is_int(value) or value < 1:
        raise ValueError("an integer from 1")
    return int(value)


def _counts(value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)) or not all(_is_int(v) and v >= 0 for v in value):
        raise ValueError("a list of integers from 0")
    return tuple(value)


def _lengths(value: Any) -> tuple[int, ...]:
    # 0 is a length that Ansor's search has still to fill in: no record that was measured has it.
    if not isinstance(value, (list, tuple)) or not all(_is_int(v) and v >= 1 for v in value):
        raise ValueError("a list of integers from 1")
    return tuple(value)


def _flag(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError("0 or 1")
    return bool(value)


def _scope(value: Any) -> str:
    if value not in ("global", "shared", "local"):
        raise ValueError("global, shared or local")
    return str(value)


def _annotation(value: Any) -> Annotation:
    if not _is_int(value) or not 0 <= value <= max(Annotation):
        raise ValueError(f"0 to {max(Annotation):d}")
    return Annotation(value)


def _unroll(value: Any) -> int:
    start, mark, number = value.partition("$") if isinstance(value, str) else ("", "", "")
    if start + mark != _UNROLL or not number.isdigit():
        raise ValueError(f"{_UNROLL}N")
    return int(number)


_READERS: dict[str, Callable[[Any], Any]] = {
    "lengths": _lengths, "from_inside": _flag, "levels": _positive, "sources": _counts,
    "order": _counts, "iterators": _counts, "annotation": _annotation, "unroll": _unroll,
    "scope": _scope, "readers": _counts, "factor": _positive,
}  # fmt: skip
"""By field; other fields are integers from 0."""


def parse_step(index: int, step: Sequence[Any]) -> Step:
    """A step as a record has it: its kind, then its fields.

    Parameters
    ----------
    index : int
        The step's place in the record, from 0, for the error.
    step : sequence
        Such as ``["SP", 3, 0, 56, [1, 4], 1]``.

    Raises
    ------
    ReplayError
        Another kind, fields of another number, or a field of another type or range.
    """
    kind = step[0] if step else None
    if not isinstance(kind, str) or kind not in STEPS:
        raise ReplayError(index, "", f"its kind is {kind!r}; allowed: {', '.join(STEPS)}")
    found = fields(STEPS[kind])
    if len(step) != len(found) + 1:
        raise ReplayError(index, kind, f"it has {len(step) - 1} fields, not {len(found)}")
    values = []
    for field, value in zip(found, step[1:], strict=True):
        read: Callable[[Any], Any] = _READERS.get(field.name, _count)
        try:
            values.append(read(value))
        except ValueError as error:
            raise ReplayError(index, kind, f"{field.name} is {value!r}; allowed: {error}") from None
    return STEPS[kind](*values)


def parse_steps(steps: Sequence[Sequence[Any]]) -> tuple[Step, ...]:
    """All steps of a record, in order; raises as `parse_step`."""
    return tuple([parse_step(index, step) for index, step in enumerate(steps)])
