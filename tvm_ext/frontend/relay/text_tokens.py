"""The words of Relay's text form."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tvm_ext.frontend.relay.errors import RelayError

# Variables keep the names of the framework that they come from, such as %conv/kernel:0 or
# %features.0.weight: all that can't end a name is part of it. So is a field's number, as in %x.0;
# which of both it is, the parser knows.
_NAME = r"(?:(?!/\*)[^\s,()\[\]{};=:])+(?::(?=\w)(?:(?!/\*)[^\s,()\[\]{};=:])+)*"

_WORDS = re.compile(
    rf"""
      (?P<space>\s+|//[^\n]*)
    | (?P<comment>/\*.*?\*/)
    | (?P<graph>%\d+(?:\.\d+)*(?![\w./]))
    | (?P<local>%{_NAME})
    | (?P<global>@{_NAME})
    | (?P<meta>meta\[[^\]\n]*\]\[\d+\])
    | (?P<number>-?(?:(?:inf|nan)f(?:16|32|64)?|\d+(?:\.\d+)*(?:[eE][+-]?\d+)?(?:[fi]\d*)?)(?!\w))
    | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    | (?P<sign>->|=>|[()\[\]{{}}<>,;:=?.\-])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class Token:
    """One word.

    Attributes
    ----------
    kind : str
        A group of the expression above, or ``end``.
    text : str
    offset : int
        Where it begins in the text.
    type_note : str
        The type in a comment that follows, as Relay prints it: ``/* ty=... */``.
    """

    kind: str
    text: str
    offset: int
    type_note: str = ""


def tokenize(text: str) -> list[Token]:
    """The words of a text, the last one of kind ``end``; comments are dropped, their types kept."""
    tokens: list[Token] = []
    for match in _WORDS.finditer(text):
        kind = match.lastgroup
        if kind == "comment":
            if tokens and (note := _type_note(match.group())):
                tokens[-1].type_note = note
        elif kind != "space":
            assert kind is not None
            tokens.append(Token(kind, match.group(), match.start()))
    tokens.append(Token("end", "", len(text)))
    return tokens


def _type_note(comment: str) -> str:
    note = comment[2:-2].strip()
    if not note.startswith("ty="):
        return ""
    return note[3:].split(" span=")[0].strip()


class Cursor:
    """A place in the tokens, with what every parser of them needs."""

    def __init__(self, text: str, source: str, tokens: list[Token] | None = None) -> None:
        self.text = text
        self.source = source
        self.tokens = tokenize(text) if tokens is None else tokens
        self.position = 0

    @property
    def token(self) -> Token:
        """The next one."""
        return self.tokens[self.position]

    def after(self, count: int = 1) -> Token:
        """The one that follows `count` later; the end at the end."""
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Go past the next token."""
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these words or signs."""
        return self.token.kind in ("sign", "name") and self.token.text in texts

    def accept(self, text: str) -> bool:
        """Go past a word or sign if it is next."""
        if self.at(text):
            self.position += 1
            return True
        return False

    def expect(self, text: str, what: str = "") -> Token:
        """Go past a word or sign that must be next."""
        if not self.at(text):
            raise self.error(f"expected {text!r}{what and ' ' + what}, found {self.found()}")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        """Go past a token of a kind that must be next."""
        if self.token.kind != kind:
            raise self.error(f"expected {what}, found {self.found()}")
        return self.take()

    def found(self) -> str:
        """The next token, for errors."""
        return repr(self.token.text) if self.token.kind != "end" else "the end of the text"

    def error(self, message: str, token: Token | None = None) -> RelayError:
        """An error at a token, by default the next one."""
        offset = (token or self.token).offset
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        return RelayError(message, self.source, f"line {line}, column {column}")
