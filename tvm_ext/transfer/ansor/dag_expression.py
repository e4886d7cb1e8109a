"""An expression of a printed compute DAG, read by precedence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tvm_ext.transfer.ansor.dag_ast import (
    Access,
    Axis,
    Binary,
    Call,
    Cast,
    Expression,
    Number,
    Unary,
)
from tvm_ext.transfer.ansor.dag_functions import DTYPES, FUNCTIONS
from tvm_ext.transfer.ansor.dag_tokens import Token
from tvm_ext.transfer.ansor.errors import DagError

_LEVELS = (
    ("||",),
    ("&&",),
    ("==", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators, the weakest first; all bind to the left."""

_SUFFIXES = {"f": "float32", "h": "float16"}


class ExpressionParser:
    """Reads the tokens of one line.

    Parameters
    ----------
    line : list of Token
    names : Mapping[str, str]
        Of every printed name of a stage so far, the unique name that it means here.
    ranks : Mapping[str, int]
        Dimensions by unique name.
    """

    def __init__(
        self, line: list[Token], names: Mapping[str, str], ranks: Mapping[str, int]
    ) -> None:
        self.line, self._position = line, 0
        self._names, self._ranks = names, ranks

    def next(self) -> Token:
        """The next token, taken."""
        token = self.line[self._position]
        self._position = min(self._position + 1, len(self.line) - 1)
        return token

    def sees(self, *signs: str) -> bool:
        """Whether one of the signs comes next."""
        return self.line[self._position].text in signs

    def take(self, kind: str, what: str) -> Token:
        """The next token, of this kind."""
        token = self.next()
        if token.kind != kind:
            raise self.error(what, token)
        return token

    def sign(self, text: str) -> Token:
        """The next token, this sign."""
        token = self.next()
        if token.text != text:
            raise self.error(repr(text), token)
        return token

    def error(self, expected: str, token: Token) -> DagError:
        """What to raise where something else was expected."""
        found = repr(token.text) if token.text else "the end of the line"
        return DagError(f"{found}; expected {expected}", token.line, token.column)

    def expression(self, level: int = 0) -> Expression:
        """An expression whose operators bind at least as strongly as those of the level."""
        if level == len(_LEVELS):
            return self._unary()
        left = self.expression(level + 1)
        while self.sees(*_LEVELS[level]):
            operator = self.next().text
            left = Binary(operator, left, self.expression(level + 1))
        return left

    def _unary(self) -> Expression:
        if not self.sees("-", "!"):
            return self._primary()
        operator, operand = self.next().text, self._unary()
        if operator == "-" and isinstance(operand, Number):
            return Number(-operand.value, operand.dtype)
        return Unary(operator, operand)

    def _primary(self) -> Expression:
        token = self.next()
        if token.kind == "number":
            return _number(token.text)
        if token.text == "(":
            if self.sees(*DTYPES):
                return self._typed_number()
            inner = self.expression()
            self.sign(")")
            return inner
        if token.kind != "name":
            raise self.error("a number, a name or '('", token)
        if self.sees("("):
            return self._call(token)
        return self._access(token) if self.sees("[") else Axis(token.text)

    def _typed_number(self) -> Expression:
        """A constant of another dtype, such as (int64)5."""
        dtype = self.next().text
        self.sign(")")
        operand = self._unary()
        if not isinstance(operand, Number):
            raise self.error("a number behind a dtype in brackets", self.line[self._position])
        return Number(operand.value, dtype)

    def _call(self, token: Token) -> Expression:
        arguments = self._arguments(")")
        if token.text in DTYPES:
            if len(arguments) != 1:
                raise self.error(f"{token.text} of one value, not of {len(arguments)}", token)
            return Cast(token.text, arguments[0])
        name = token.text.removeprefix("@").removeprefix("tir.")
        function = FUNCTIONS.get(name)
        if function is None:
            raise self.error(f"one of the functions {', '.join(FUNCTIONS)}", token)
        if len(arguments) != function.arity:
            raise self.error(f"{name} of {function.arity} values, not of {len(arguments)}", token)
        return Call(name, arguments)

    def _access(self, token: Token) -> Access:
        stage = self._names.get(token.text)
        if stage is None:
            raise self.error(f"a stage above ({', '.join(self._names) or 'there is none'})", token)
        indices = self._arguments("]")
        rank = self._ranks[stage]
        if len(indices) != rank:
            raise self.error(f"{rank} indices of {token.text}, not {len(indices)}", token)
        return Access(stage, indices)

    def _arguments(self, end: str) -> tuple[Expression, ...]:
        self.next()
        items: list[Expression] = []
        while not self.sees(end):
            if items:
                self.sign(",")
            if self.sees("dtype"):
                # Versions before 0.9 end a call with the dtype of its result.
                self.next()
                self.sign("=")
                self.take("name", "a dtype")
                continue
            items.append(self.expression())
        self.sign(end)
        return tuple(items)


def _number(text: str) -> Number:
    if text[-1] in _SUFFIXES:
        dtype = _SUFFIXES[text[-1]]
        return Number(_float(text[:-1], dtype), dtype)
    if text.isdigit():
        return Number(int(text), "int32")
    return Number(float(text), "float64")


def _float(text: str, dtype: str) -> float:
    """The number; the largest of its dtype is printed with six digits, which means that one."""
    largest = float(np.finfo(dtype).max)
    value = float(text)
    return largest if f"{largest:.6g}" == f"{value:.6g}" else value
