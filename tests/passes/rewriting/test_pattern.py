"""What patterns find, and what they take for equal."""

from __future__ import annotations

from typing import Any

import pytest
from relax_models import module
from tvm import relax
from tvm.relax import op

from tests.passes.rewriting.case import Body, Shapes, part
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.graph import Graph
from tvm_ext.passes.rewriting.pattern import (
    Again,
    Fields,
    Match,
    Number,
    Op,
    Pattern,
    Sole,
    Value,
    product,
)

_ABC: Shapes = {"a": (4,), "b": (4,), "c": (4,)}
_A, _B, _C = Value("a"), Value("b"), Value("c")


def _found(body: Body, pattern: Pattern, inputs: Shapes = _ABC) -> list[dict[str, str]]:
    """The names of the variables behind each match of the last operator."""
    graph = Graph()
    calls = [(v, e) for v, e in df.bindings(module(inputs, body)["main"]) if df.op_name(e)]
    for var, expr in calls[:-1]:
        graph.bind(var, expr, 1)
    matches = pattern.match(calls[-1][1], graph, Match())
    return [
        {name: x.name for name, x in match.named.items() if isinstance(x, relax.Var)}
        for match in matches
    ]


def test_arguments_of_an_addition_match_in_either_order() -> None:
    def body(emit: Any, a: Any, b: Any, c: Any) -> Any:
        return emit(op.add(a, emit(op.exp(b))))

    assert _found(body, Op("add", Op("exp", _B), _A)) == [{"a": "a", "b": "b"}]
    assert _found(body, Op("subtract", Op("exp", _B), _A)) == []


def test_a_name_stands_for_one_tensor() -> None:
    def body(emit: Any, a: Any, b: Any, c: Any) -> Any:
        return emit(op.subtract(emit(op.exp(a)), b))

    assert _found(body, Op("subtract", Op("exp", _A), _B)) == [{"a": "a", "b": "b"}]
    assert _found(body, Op("subtract", Op("exp", _A), _A)) == []


@pytest.mark.parametrize("order", ["abc", "bca", "cab", "cba"])
def test_products_match_however_they_are_bracketed(order: str) -> None:
    def body(emit: Any, *inputs: Any) -> Any:
        named = {"a": inputs[0], "b": emit(op.exp(inputs[1])), "c": emit(op.abs(inputs[2]))}
        x, y, z = (named[letter] for letter in order)
        return emit(op.multiply(emit(op.multiply(x, y)), z))

    pattern = product(_A, Op("exp", _B), Op("abs", _C))
    assert {"a": "a", "b": "b", "c": "c"} in _found(body, pattern)


def test_fields_need_one_that_matches() -> None:
    def body(emit: Any, a: Any, b: Any, c: Any) -> Any:
        return emit(op.concat([a, emit(op.exp(b))], 0))

    assert _found(body, Op("concat", Fields(Op("exp", _B), "parts"))) == [{}]
    assert _found(body, Op("concat", Fields(Op("abs", _B), "parts"))) == []
    assert _found(body, Op("concat", Sole(_A))) == []


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (part(0, 0, 2), part(0, 0, 2), True),
        (part(0, 0, 2), part(0, 1, 3), False),
        (lambda x: op.sum(x, [0]), lambda x: op.sum(x, [0]), True),
        (lambda x: op.sum(x, [0], True), lambda x: op.sum(x, [0]), False),
        (lambda x: op.reshape(x, (2, 2)), lambda x: op.reshape(x, (4, 1)), False),
        (lambda x: op.add(x, _number(1)), lambda x: op.add(x, _number(1)), True),
        (lambda x: op.add(x, _number(1)), lambda x: op.add(x, _number(2)), False),
        (op.exp, op.abs, False),
    ],
)
def test_equal_calls_agree_in_all_arguments_and_attributes(
    first: Any, second: Any, equal: bool
) -> None:
    def body(emit: Any, a: Any, b: Any, c: Any) -> Any:
        emit(first(a))
        emit(first(b))
        return emit(second(a))

    assert bool(_found(body, Again("x"))) == equal


def _number(value: float) -> Any:
    return relax.const(value, "float32")


def test_numbers_match_to_single_precision() -> None:
    def body(emit: Any, a: Any, b: Any, c: Any) -> Any:
        return emit(op.add(a, _number(2**0.5)))

    assert _found(body, Op("add", _A, Number(value=2**0.5)))
    assert not _found(body, Op("add", _A, Number(value=1.4142)))
