"""Patterns of operators, matched against a graph with backtracking over commutative arguments.

`relax.dpl` has no commutative calls: A * C + A * B would be sixteen patterns there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.graph import Graph

# Stands for every operator in a pattern's `operators`.
ANY = "*"
VIEWS = "|".join(sorted(name.removeprefix("relax.") for name in df.VIEWS))
# One-to-One operators of one tensor and two, for rules that move something across them.
UNARY = (
    "nn.relu|nn.gelu|nn.gelu_tanh|nn.silu|nn.softplus|nn.leakyrelu|sigmoid|tanh|exp|log|erf|sqrt|"
    "rsqrt|abs|negative|clip|astype|floor|ceil|round|sin|cos|square"
)
BINARY = "add|subtract|multiply|divide|maximum|minimum"
_COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum"})


@dataclass(frozen=True)
class Match:
    """What a pattern has found.

    Attributes
    ----------
    named : dict of str to Expr
        Variables or constants, by the names in the pattern; of operators, their calls.
    inner : tuple of Var
        The variables of the matched operators except the root.
    """

    named: dict[str, Any] = field(default_factory=dict)
    inner: tuple[Any, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.named[name]

    def number(self, name: str) -> float:
        """A constant of one element."""
        return float(self.array(name).reshape(()))

    def array(self, name: str) -> np.ndarray:
        """A constant's array."""
        array = df.value_of(self.named[name])
        assert array is not None
        return array

    def bind(self, name: str, expr: Any) -> Match | None:
        """This match with a name bound, or None if the name stands for something else already."""
        if not name:
            return self
        if name in self.named:
            return self if _same(self.named[name], expr) else None
        return Match({**self.named, name: expr}, self.inner)


class Pattern(ABC):
    """Something that an expression may match."""

    @abstractmethod
    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        """Every way in which `expr` matches, given what has been found before."""


@dataclass(frozen=True)
class Value(Pattern):
    """Any tensor; the same name twice is the same tensor."""

    name: str

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        bound = found.bind(self.name, expr)
        if bound is not None:
            yield bound


@dataclass(frozen=True)
class Unlike(Pattern):
    """Any tensor that `other` doesn't match; the same name twice is the same tensor."""

    name: str
    other: Pattern

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        if next(self.other.match(expr, graph, Match()), None) is None:
            yield from Value(self.name).match(expr, graph, found)


@dataclass(frozen=True)
class Weights(Pattern):
    """Any constant."""

    name: str

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        if df.value_of(expr) is not None:
            yield from Value(self.name).match(expr, graph, found)


@dataclass(frozen=True)
class Number(Pattern):
    """A constant of one element: any, or one close to `value` in float32."""

    name: str = ""
    value: float | None = None

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        array = df.value_of(expr)
        if array is None or array.size != 1:
            return
        number = float(array.reshape(()))
        if self.value is not None and not np.isclose(number, self.value, rtol=1e-6, atol=0):
            return
        bound = found.bind(self.name, expr)
        if bound is not None:
            yield bound


@dataclass(frozen=True)
class Again(Pattern):
    """A call equal to an earlier one, of whatever operator; the earlier result gets the name."""

    name: str
    operators: frozenset[str] = frozenset({ANY})

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        earlier = graph.earlier(expr)
        bound = None if earlier is None else found.bind(self.name, earlier)
        if bound is not None:
            yield bound


@dataclass(frozen=True)
class Fields(Pattern):
    """A tuple of tensors of which at least one matches.

    The name stands for a list with a match, or None, for each field.
    """

    pattern: Pattern
    name: str

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        if not isinstance(expr, relax.Tuple):
            return
        fields = [next(self.pattern.match(f, graph, Match()), None) for f in expr.fields]
        inner = [var for field in fields if field is not None for var in field.inner]
        if any(field is not None for field in fields):
            yield Match({**found.named, self.name: fields}, (*found.inner, *inner))


@dataclass(frozen=True)
class Sole(Pattern):
    """A tuple of one tensor."""

    pattern: Pattern

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        if isinstance(expr, relax.Tuple) and len(expr.fields) == 1:
            yield from self.pattern.match(expr.fields[0], graph, found)


class Op(Pattern):
    """A call of an operator, named without ``relax.``; its tensor arguments match patterns.

    Parameters
    ----------
    operator : str
        Several are separated by ``|``.
    args : Pattern
        Of the first arguments; those of add, multiply, maximum and minimum in either order.
    name : str
        Under which the call is found.
    """

    def __init__(self, operator: str, *args: Pattern, name: str = "") -> None:
        self.operators = frozenset(operator.split("|"))
        self.args = args
        self.name = name

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        operator = graph.operator(expr)
        if operator not in self.operators:
            return
        call = graph.value(expr)
        arguments = tuple(call.args)
        if len(arguments) < len(self.args):
            return
        bound = found.bind(self.name, call)
        if bound is None:
            return
        if isinstance(expr, relax.Var):
            bound = Match(bound.named, (*bound.inner, expr))
        given = arguments[: len(self.args)]
        yield from _all(self.args, given, graph, bound)
        if operator in _COMMUTATIVE and len(given) == 2:
            yield from _all(self.args, given[::-1], graph, bound)


class Either(Pattern):
    """Any of several patterns."""

    def __init__(self, *patterns: Op) -> None:
        self.patterns = patterns
        self.operators = frozenset().union(*(p.operators for p in patterns))

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        for pattern in self.patterns:
            yield from pattern.match(expr, graph, found)


def product(a: Pattern, b: Pattern, c: Pattern) -> Either:
    """a * b * c, however it is bracketed."""
    trees = ((a, b, c), (a, c, b), (b, c, a))
    return Either(*(Op("multiply", Op("multiply", x, y), z) for x, y, z in trees))


def one_to_one(x: Pattern) -> Either:
    """An operator ``f`` of x alone, or of x and a constant ``c``."""
    c = Weights("c")
    return Either(Op(UNARY, x, name="f"), Op(BINARY, x, c, name="f"), Op(BINARY, c, x, name="f"))


def _all(
    patterns: tuple[Pattern, ...], exprs: tuple[Any, ...], graph: Graph, found: Match
) -> Iterator[Match]:
    if not patterns:
        yield found
        return
    for first in patterns[0].match(exprs[0], graph, found):
        yield from _all(patterns[1:], exprs[1:], graph, first)


def _same(a: Any, b: Any) -> bool:
    if a.same_as(b):
        return True
    x, y = df.value_of(a), df.value_of(b)
    return x is not None and y is not None and x.dtype == y.dtype and np.array_equal(x, y)
