"""Bytes, texts and names as C source."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_ROW = 16


def c_string(text: str) -> str:
    """A string literal in ASCII, of the text's UTF-8 bytes.

    Octal escapes have at most three digits, so they can't swallow what follows; question marks are
    escaped because two of them begin a trigraph.
    """
    parts = []
    for byte in text.encode():
        character = chr(byte)
        if character in '"\\?':
            parts.append("\\" + character)
        else:
            parts.append(character if 32 <= byte < 127 else f"\\{byte:03o}")
    return f'"{"".join(parts)}"'


def c_comment(text: str) -> str:
    """A text that can stand inside a comment and doesn't end it."""
    return re.sub(r"[^\w .,:;=()\[\]+-]", "_", text, flags=re.ASCII)


def c_name(text: str, taken: Collection[str]) -> str:
    """A part of an identifier in small letters, unlike those that are taken.

    Letters and digits stay, runs of anything else are one underscore.
    """
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "tensor"
    wanted, number = name, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def byte_rows(data: bytes) -> Iterator[str]:
    """The initialisers of a `uint8_t` array, 16 in a row."""
    for start in range(0, len(data), _ROW):
        yield "0x" + data[start : start + _ROW].hex(" ").replace(" ", ", 0x") + ","


def word_row(data: bytes) -> str:
    """The initialisers of little-endian `uint32_t` values."""
    words = (int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4))
    return " ".join(f"0x{word:08x}U," for word in words)
