"""Let-bound expressions: the same values from a tree that stays as small as the graph."""

from __future__ import annotations

import pytest
from tvm import tirx
from tvm.ir import Call

from tvm_ext.schedules import scalar_math as sm
from tvm_ext.schedules.sharing import share


def tree_size(node):
    """Nodes that a walk which doesn't remember them visits."""
    if isinstance(node, tirx.Let):
        return 1 + tree_size(node.value) + tree_size(node.body)
    if isinstance(node, Call):
        return 1 + sum(tree_size(x) for x in node.args)
    fields = ("a", "b", "condition", "true_value", "false_value", "value")
    inner = (getattr(node, f) for f in fields if isinstance(getattr(node, f, None), tirx.Expr))
    return 1 + sum(tree_size(x) for x in inner)


def test_repeated_squares_stay_linear():
    x = tirx.Var("x", "float32")
    y = x
    for _ in range(12):
        y = y * y
    assert tree_size(y) == 2**13 - 1
    # A product and its two variables, and a Let, for each of twelve.
    assert tree_size(share(y)) <= 4 * 12


def test_binding_stands_below_the_node_that_needs_it():
    x = tirx.Var("x", "float32")
    inner = x + tirx.const(1.0, "float32")
    shared = share(x - inner * inner)
    assert isinstance(shared, tirx.Sub)
    assert isinstance(shared.b, tirx.Let)
    outer = share((x - inner) * inner)
    assert isinstance(outer, tirx.Let)


def test_guarded_load_is_not_moved_out():
    x = tirx.Var("x", "float32")
    guarded = tirx.if_then_else(x > tirx.const(0.0, "float32"), x * x, x)
    shared = share(guarded + guarded)
    assert isinstance(shared, tirx.Let)
    assert shared.value.same_as(guarded)


@pytest.mark.parametrize("name", ["gelu", "erf", "tanh", "exp"])
def test_functions_of_scalar_math_shrink(name):
    y = getattr(sm, name)(tirx.Var("x", "float32"))
    assert tree_size(share(y)) < 250
