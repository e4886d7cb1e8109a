"""One line of a log as JSON, or what is wrong with it."""

from __future__ import annotations

import json
import re
from typing import Any

from tvm_ext.errors import RecordError


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RecordError("several records in one line", "a key stands twice in an object")
    return found


# What may be left of a number or a word such as null, at the end of a line that was cut.
_CUT_OFF = re.compile(r"-|[.eE][-+]?|[A-Za-z]{0,7}")
_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys)


def load_line(line: bytes, start: re.Pattern[str]) -> Any:
    """The value that a line holds.

    NaN and infinities are read: whoever looks at a number refuses them, and can say which it is.

    Parameters
    ----------
    line : bytes
    start : re.Pattern
        What every record of this format begins with: found again later in a line that isn't JSON,
        it shows that two writers met there.

    Raises
    ------
    RecordError
        Not UTF-8, truncated, several records in one line, nested too deep, or no JSON otherwise.
    """
    try:
        text = line.decode().strip()
    except UnicodeDecodeError as error:
        raise RecordError("not UTF-8", f"byte {error.start + 1}") from error
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        raise _not_json(text, start, error) from error
    except RecursionError as error:
        raise RecordError("nested too deep") from error
    except ValueError as error:  # Integers of thousands of digits.
        raise RecordError("not JSON", str(error).split(";")[0]) from error
    if end != len(text):
        if start.match(text, end):
            raise RecordError("several records in one line", f"the second at column {end + 1}")
        raise RecordError("not JSON", f"more text from column {end + 1} on")
    return value


def _not_json(text: str, start: re.Pattern[str], error: json.JSONDecodeError) -> RecordError:
    if second := start.search(text, 1):
        detail = f"the second at column {second.start() + 1}"
        return RecordError("several records in one line", detail)
    # A string that never ends is reported where it begins.
    cut = _CUT_OFF.fullmatch(text, error.pos) and error.pos > 0
    if cut or error.msg.startswith("Unterminated string"):
        return RecordError("truncated line", f"{len(text)} characters")
    return RecordError("not JSON", f"{error.msg} at column {error.pos + 1}")


def is_int(value: Any) -> bool:
    """Whether JSON's value is an integer; true and false aren't."""
    return type(value) is int


def is_ints(value: Any) -> bool:
    """Whether JSON's value is a list of integers."""
    return type(value) is list and all(type(item) is int for item in value)


def check_text(text: str, reason: str, what: str) -> str:
    """The text, if it can be printed and written.

    Raises
    ------
    RecordError
        It is empty, or has control characters or halves of surrogate pairs.
    """
    if not text or not text.isprintable():
        raise RecordError(reason, f"{what} {text!r} has no printable text")
    return text
