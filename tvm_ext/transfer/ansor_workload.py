"""The key by which Ansor names a workload."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from tvm_ext.errors import RecordError
from tvm_ext.transfer.json_line import check_text, is_int, is_ints
from tvm_ext.transfer.record import Workload, nested_tuple

_HASH = re.compile(r"[0-9a-f]{32}")
_REASON = "bad workload key"


@functools.lru_cache(maxsize=1024)
def read_workload(key: str) -> Workload:
    """The workload of a key: a JSON list, first the DAG's hash or a name, then arguments.

    A hash is 32 hexadecimal digits; behind it stand sizes, or shapes as lists of sizes. Behind a
    name stands what the registered function takes: sizes, shapes, texts such as a dtype, tensors as
    ``["TENSOR", shape, dtype]``, and lists of these.

    Raises
    ------
    RecordError
        The key is no such list, or a shape isn't a list of integers above 0.
    """
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError) as error:
        raise RecordError(_REASON, "not JSON") from error
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], str):
        raise RecordError(_REASON, "no list that starts with a hash or a name")
    name, *arguments = parts
    check_text(name, _REASON, "name")
    hashed = _HASH.fullmatch(name) is not None
    for place, argument in enumerate(arguments, 1):
        fits = _is_size_or_shape(argument) if hashed else _is_argument(argument)
        if not fits:
            raise RecordError(
                _REASON, f"argument {place} is {_short(argument)}; allowed: {_allowed(hashed)}"
            )
    return Workload(name, nested_tuple(arguments), "dag" if hashed else "named")


def _is_size_or_shape(value: Any) -> bool:
    sizes = [value] if is_int(value) else value
    return is_ints(sizes) and all(size > 0 for size in sizes)


def _is_argument(value: Any) -> bool:
    if isinstance(value, list):
        return _is_list_argument(value)
    finite = value == value and value not in (float("inf"), float("-inf"))
    return value is None or (type(value) in (int, float, bool, str) and finite)


def _is_list_argument(value: list[Any]) -> bool:
    """A tensor, or a list of integers, tensors and such lists; padding and strides may be 0."""
    if len(value) == 3 and value[0] == "TENSOR" and type(value[2]) is str:
        return is_ints(value[1]) and all(size > 0 for size in value[1])
    return all(is_int(v) or (isinstance(v, list) and _is_list_argument(v)) for v in value)


def _allowed(hashed: bool) -> str:
    return (
        "a size or a list of sizes, integers above 0" if hashed
        else "a number, a text, null, a list of integers or tensors"
    )  # fmt: skip


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
