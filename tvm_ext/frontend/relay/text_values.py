"""Types, literals and attribute values of Relay's text form."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tvm_ext.frontend.relay.ast import Dim, TensorType, TupleType, Type
from tvm_ext.frontend.relay.dtypes import check_dtype
from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.text_tokens import Cursor, Token

_MAX_DEPTH = 64
_NUMBER = re.compile(r"(-?)(inf|nan|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?:([fi])(\d*))?")
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPES = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}

# What meta[type][index] stands for, as plain data.
MetaValue = Callable[[Token], Any]


def parse_type(cursor: Cursor, meta: MetaValue, depth: int = 0) -> Type | None:
    """A type; None for one of a function, or ``_``.

    Raises
    ------
    RelayError
        An algebraic type, a reference, or none at all.
    """
    token = cursor.token
    if depth > _MAX_DEPTH:
        raise cursor.error(f"types nest deeper than {_MAX_DEPTH}")
    if cursor.accept("("):
        fields = _sequence(cursor, ")", lambda: parse_type(cursor, meta, depth + 1))
        known = tuple(field for field in fields if field is not None)
        return TupleType(known) if len(known) == len(fields) else None
    if cursor.accept("fn"):
        skip_brackets(cursor, "[")
        cursor.expect("(")
        _sequence(cursor, ")", lambda: parse_type(cursor, meta, depth + 1))
        cursor.expect("->")
        parse_type(cursor, meta, depth + 1)
        return None
    if cursor.accept("_"):
        return None
    if cursor.accept("Tensor"):
        cursor.expect("[")
        cursor.expect("(", "before the shape")
        shape = _sequence(cursor, ")", lambda: _dim(cursor, meta))
        cursor.expect(",", "before the dtype")
        dtype = _dtype(cursor)
        cursor.expect("]")
        return TensorType(tuple(shape), dtype)
    if token.kind == "name" and cursor.after().text != "[":
        return TensorType((), _dtype(cursor))
    if token.kind == "meta":
        cursor.take()
        if token.text.startswith("meta[IncompleteType]"):
            return None
    raise cursor.error(
        f"expected a type, found {token.text!r}: allowed are Tensor[(...), dtype], a dtype, tuples "
        "of types and fn (...) -> ...",
        token,
    )


@lru_cache(maxsize=4096)
def type_in_note(note: str) -> Type | None:
    """The type that Relay prints in a comment; None for one that isn't read."""
    cursor = Cursor(note, "comment")
    try:
        found = parse_type(cursor, lambda token: "?")
    except RelayError:
        return None
    return found if cursor.token.kind == "end" else None


def parse_value(cursor: Cursor, meta: MetaValue, depth: int = 0) -> Any:
    """The value of an attribute as plain data; objects that aren't data as ``"<Type>"``."""
    token = cursor.token
    if depth > _MAX_DEPTH:
        raise cursor.error(f"values nest deeper than {_MAX_DEPTH}")
    if cursor.accept("["):
        return _sequence(cursor, "]", lambda: parse_value(cursor, meta, depth + 1))
    if cursor.accept("("):
        return _sequence(cursor, ")", lambda: parse_value(cursor, meta, depth + 1))
    if cursor.accept("{"):
        return dict(_sequence(cursor, "}", lambda: _entry(cursor, meta, depth + 1)))
    if cursor.accept("?"):
        return "?"
    cursor.take()
    if token.kind == "number":
        return number(cursor, token)[0]
    if token.kind == "string":
        return unquote(token.text)
    if token.kind == "meta":
        return meta(token)
    if token.kind == "global":
        return token.text[1:]
    if token.kind == "name":
        if token.text in ("True", "False"):
            return token.text == "True"
        if token.text == "None":
            return None
        if skip_brackets(cursor, "("):
            return f"<{token.text}>"
        return token.text
    raise cursor.error(f"expected the value of an attribute, found {token.text!r}", token)


def _entry(cursor: Cursor, meta: MetaValue, depth: int) -> tuple[str, Any]:
    key = cursor.take()
    if key.kind not in ("string", "name"):
        raise cursor.error(f"expected a key, found {key.text!r}", key)
    cursor.expect("=", "behind a key")
    return unquote(key.text), parse_value(cursor, meta, depth)


def number(cursor: Cursor, token: Token) -> tuple[int | float, str]:
    """A literal's value and dtype: ``1`` int32, ``1f`` float32, ``1i64``, ``1f16``, ...

    The dtype is "" where the text doesn't say it: of a number without a suffix.
    """
    match = _NUMBER.fullmatch(token.text)
    if match is None:
        raise cursor.error(f"{token.text!r} is no number", token)
    sign, digits, kind, width = match.groups()
    integer = digits.isdecimal() and kind != "f"
    if kind == "i" and not integer:
        raise cursor.error(f"{token.text!r} is no whole number", token)
    try:
        value: int | float = int(sign + digits) if integer else float(sign + digits)
        name = check_dtype(f"{'int' if integer else 'float'}{width or 32}") if kind else ""
        np.dtype(name or "float32")
    except (ValueError, TypeError) as error:
        raise cursor.error(f"{token.text!r} is no number: {error}", token) from None
    return value, name


def literal(cursor: Cursor, token: Token) -> np.ndarray:
    """A literal as a constant: a 0-d array.

    A number without a suffix has the dtype in the comment behind it (before 0.9, an int64 has none
    either), else int32, int64 where it doesn't fit, or float32.
    """
    if token.text in ("True", "False"):
        return np.array(token.text == "True")
    value, dtype = number(cursor, token)
    if not dtype:
        noted = type_in_note(token.type_note) if token.type_note else None
        if isinstance(noted, TensorType) and not noted.shape:
            dtype = noted.dtype
        elif isinstance(value, int):
            dtype = "int32" if -(2**31) <= value < 2**31 else "int64"
        else:
            dtype = "float32"
    try:
        with np.errstate(over="ignore"):
            return np.array(value, np.dtype(dtype))
    except (OverflowError, TypeError) as error:
        raise cursor.error(f"{token.text!r} is no {dtype}: {error}", token) from None


def unquote(text: str) -> str:
    """A quoted string's value, or the word itself.

    Relay writes bytes that aren't printable as C does: ``\\n``, octal and hexadecimal ones.
    """
    if text[0] not in "\"'":
        return text

    def plain(match: re.Match[bytes]) -> bytes:
        octal, hexadecimal, char = match.groups()
        if octal:
            return bytes([int(octal, 8) & 255])
        if hexadecimal:
            return bytes([int(hexadecimal, 16)])
        return _ESCAPES.get(char, char)

    return _ESCAPE.sub(plain, text[1:-1].encode()).decode(errors="replace")


def skip_brackets(cursor: Cursor, opening: str) -> bool:
    """Go past a bracket and all in it, if it is next; whether it was."""
    if not cursor.at(opening):
        return False
    start = cursor.token
    depth = 0
    while True:
        token = cursor.take()
        if token.kind == "end":
            raise cursor.error(f"{opening!r} isn't closed", start)
        if token.kind == "sign" and token.text in "([{":
            depth += 1
        elif token.kind == "sign" and token.text in ")]}":
            depth -= 1
            if depth == 0:
                return True


def _sequence(cursor: Cursor, closing: str, parse: Callable[[], Any]) -> list[Any]:
    """What stands between commas up to a bracket; a last comma may be there."""
    items: list[Any] = []
    while not cursor.accept(closing):
        items.append(parse())
        if not cursor.at(closing):
            cursor.expect(",", f"or {closing!r}")
    return items


def _dim(cursor: Cursor, meta: MetaValue) -> Dim:
    token = cursor.token
    value = parse_value(cursor, meta)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise cursor.error(f"expected a dimension, found {token.text!r}", token)
    return "?" if isinstance(value, str) and value.startswith("<") else value


def _dtype(cursor: Cursor) -> str:
    token = cursor.expect_kind("name", "a dtype")
    try:
        return check_dtype(token.text)
    except ValueError as error:
        raise cursor.error(str(error), token) from None
