"""The least and the greatest value that an index of a compute DAG takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tvm_ext.transfer.ansor.dag_ast import (
    Access,
    Axis,
    Binary,
    Call,
    Cast,
    Expression,
    Number,
    Unary,
    children,
)


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, both among the values; infinite where nothing is known."""

    low: float
    high: float


ANY = Interval(-math.inf, math.inf)
_SIDES = {">=": (0, True), ">": (1, True), "<=": (0, False), "<": (-1, False)}


def bounds(index: Expression, ranges: Mapping[str, Interval]) -> Interval:
    """Bounds of an integer expression whose axes lie in these ranges; exact for affine ones."""
    match index:
        case Number(value, _):
            return Interval(value, value)
        case Axis(name):
            return ranges.get(name, ANY)
        case Cast(_, operand):
            return bounds(operand, ranges)
        case Unary("-", operand):
            inner = bounds(operand, ranges)
            return Interval(-inner.high, -inner.low)
        case Binary(operator, left, right):
            return _binary(operator, bounds(left, ranges), bounds(right, ranges))
        case Call(function, (left, right)):
            return _binary(function, bounds(left, ranges), bounds(right, ranges))
        case Call("if_then_else" | "select", (_, yes, no)):
            a, b = bounds(yes, ranges), bounds(no, ranges)
            return Interval(min(a.low, b.low), max(a.high, b.high))
    return ANY


def _binary(operator: str, a: Interval, b: Interval) -> Interval:
    positive = b.low == b.high and b.low > 0
    match operator:
        case "+":
            return Interval(a.low + b.low, a.high + b.high)
        case "-":
            return Interval(a.low - b.high, a.high - b.low)
        case "min":
            return Interval(min(a.low, b.low), min(a.high, b.high))
        case "max":
            return Interval(max(a.low, b.low), max(a.high, b.high))
        case "*":
            products = [_product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
            return Interval(min(products), max(products))
        case "floordiv" if positive:
            return Interval(_quotient(a.low, b.low), _quotient(a.high, b.low))
        case "floormod" if positive:
            inside = a.low >= 0 and a.high < b.low
            return a if inside else Interval(0, b.low - 1)
    return ANY


def _product(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y


def _quotient(x: float, y: float) -> float:
    return x // y if math.isfinite(x) else x


def accesses(
    expression: Expression, ranges: Mapping[str, Interval]
) -> Iterator[tuple[Access, Mapping[str, Interval]]]:
    """Every access in the expression, with the ranges that its guards leave to the axes.

    The guards are the conditions of ``if_then_else`` and ``select`` around it: comparisons of an
    axis with a constant, joined by ``&&``; other conditions narrow nothing.
    """
    match expression:
        case Call("if_then_else" | "select", (condition, yes, no)):
            yield from accesses(condition, ranges)
            yield from accesses(yes, _narrowed(ranges, guards(condition)))
            yield from accesses(no, _narrowed(ranges, _negated(condition)))
            return
        case Access():
            yield expression, ranges
    for child in children(expression):
        yield from accesses(child, ranges)


def guards(condition: Expression) -> list[tuple[str, bool, int]]:
    """The bounds that a condition sets: axis, whether from below, and the last value inside."""
    match condition:
        case Binary("&&", left, right):
            return guards(left) + guards(right)
        case Binary(operator, Axis(name), Number(value, _)) if operator in _SIDES:
            offset, below = _SIDES[operator]
            return [(name, below, int(value) + offset)]
    return []


def _negated(condition: Expression) -> list[tuple[str, bool, int]]:
    """The bounds where the condition doesn't hold; only one comparison has such."""
    if isinstance(condition, Binary) and condition.operator == "&&":
        return []
    return [(n, not below, v - 1 if below else v + 1) for n, below, v in guards(condition)]


def _narrowed(
    ranges: Mapping[str, Interval], found: list[tuple[str, bool, int]]
) -> Mapping[str, Interval]:
    narrowed = dict(ranges)
    for name, below, value in found:
        old = narrowed.get(name, ANY)
        narrowed[name] = (
            Interval(max(old.low, value), old.high) if below
            else Interval(old.low, min(old.high, value))
        )  # fmt: skip
    return narrowed
