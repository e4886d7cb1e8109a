"""Costs counted by hand."""

from __future__ import annotations

from typing import Any

import pytest
from relax_models import array, const, module
from tvm.relax import op

from tests.passes.rewriting.case import Body, Shapes, chain, part, shaped
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.cost import Cost, cost

_X: Shapes = {"x": (2, 3)}


def _concat(emit: Any, a: Any, b: Any) -> Any:
    return emit(op.concat([a, b], 1))


def _residual(emit: Any, a: Any, b: Any) -> Any:
    return emit(op.nn.relu(emit(op.add(emit(op.add(a, b)), a))))


@pytest.mark.parametrize(
    ("inputs", "body", "expected"),
    [
        # Two operands in, one result out, whatever lies between.
        ({"a": (2, 3), "b": (2, 3)}, _residual, Cost(3 * 6, 3 * 24, 3)),
        (_X, chain(shaped(6)), Cost(0, 0, 1)),
        # The sum is written for the reshape to view.
        (_X, chain(lambda x: op.add(x, x), shaped(6)), Cost(6, 2 * 24, 2)),
        (_X, chain(lambda x: op.matmul(x, const(array(0, 3, 5)))), Cost(60, 24 + 60 + 40, 1)),
        # The product's kernel goes on with what follows it.
        (
            _X,
            chain(lambda x: op.matmul(x, const(array(0, 3, 5))), op.negative),
            Cost(60 + 10, 24 + 60 + 40, 2),
        ),
        ({"x": (10, 3)}, chain(part(0, 1, 3)), Cost(6, 2 * 24, 1)),
        ({"a": (1, 16, 5), "b": (1, 3, 5)}, _concat, Cost(0, 0, 1)),
        ({"a": (1, 15, 5), "b": (1, 3, 5)}, _concat, Cost(90, 2 * 360, 1)),
        ({"a": (2, 16, 5), "b": (2, 3, 5)}, _concat, Cost(190, 2 * 760, 1)),
    ],
)
def test_cost(inputs: Shapes, body: Body, expected: Cost) -> None:
    pairs = df.bindings(module(inputs, body)["main"])
    # The last binding only names the result.
    calls = [(var, expr) for var, expr in pairs if df.op_name(expr)]
    assert cost(dict(calls[:-1]), calls[-1][1]) == expected


def test_of_equal_weights_the_fewer_operators_are_cheaper() -> None:
    assert Cost(8, 1, 2).less_than(Cost(0, 2, 3))
    assert not Cost(8, 1, 3).less_than(Cost(0, 2, 3))
    assert Cost(0, 1, 9).less_than(Cost(0, 2, 1))
