"""MetaSchedule's target, an object, as one line."""

from __future__ import annotations

import json
from typing import Any

from tvm_ext.errors import RecordError
from tvm_ext.transfer.json_line import check_text


def target_line(target: Any) -> str:
    """``kind -keys=a,b -option=value ...``, options in the order of the alphabet.

    Raises
    ------
    RecordError
        No object with a kind, or text in it that can't be printed.
    """
    if not isinstance(target, dict) or not isinstance(target.get("kind"), str):
        raise RecordError("bad target", "no object with a kind")
    words = [target["kind"]]
    for name, value in sorted(target.items()):
        if name != "kind" and value not in ("", []):
            words.append(f"-{name}={_value(value)}")
    return check_text(" ".join(words), "bad target", "target")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
