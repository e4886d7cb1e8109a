"""Ansor's printed compute DAG as tokens, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tvm_ext.transfer.ansor.errors import DagError

TokenKind = Literal["number", "name", "sign", "end"]

_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)"
    # A trailing f or h is a dtype; it must not be the start of a name.
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:[fh](?!\w))?)"
    # Functions and stages have dots in their names, such as tir.exp; old versions write @tir.exp.
    r"|(?P<name>@?[A-Za-z_][\w.]*)"
    r"|(?P<sign>\+=|==|!=|<=|>=|&&|\|\||[-+*/%<>!()\[\],=])"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text.

    Attributes
    ----------
    kind : str
        ``number``, ``name``, ``sign`` or ``end`` (of a line).
    text : str
        As written; empty at the end.
    line, column : int
        From 1.
    """

    kind: TokenKind
    text: str
    line: int
    column: int


def tokens(text: str, line: int) -> list[Token]:
    """The tokens of one line of the text, an ``end`` behind them.

    Raises
    ------
    DagError
        A character that no token starts with.
    """
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise DagError(f"can't read {text[position : position + 20]!r}", line, position + 1)
        if match.lastgroup in ("number", "name", "sign"):
            kind: TokenKind = match.lastgroup  # type: ignore[assignment]
            found.append(Token(kind, match.group(), line, position + 1))
        position = match.end()
    return [*found, Token("end", "", line, len(text) + 1)]
