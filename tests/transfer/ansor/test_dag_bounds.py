"""Bounds of indices against every value that the axes take."""

import itertools

import pytest

from tvm_ext.transfer.ansor.dag_ast import Access, walk
from tvm_ext.transfer.ansor.dag_bounds import ANY, Interval, accesses, bounds
from tvm_ext.transfer.ansor.dag_parse import parse_dag


def index(text):
    return parse_dag(f"p = PLACEHOLDER [8]\nout(i, j) = ({text})").computes[0].body


@pytest.mark.parametrize(
    "text",
    [
        "i*2 + j", "i - j", "-i", "floordiv(i, 3)", "floormod(i, 4)", "floormod(i, 16)",
        "min(i, 3)", "max(i, j)", "(i - 5)*2", "j*(-3)", "floordiv(i - 9, 4)",
    ],
)  # fmt: skip
def test_affine_and_divided_indices(text):
    functions = {"min": min, "max": max, "floordiv": lambda a, b: a // b}
    functions["floormod"] = lambda a, b: a % b
    values = [
        eval(text, {"i": i, "j": j, **functions}) for i, j in itertools.product(range(7), range(4))
    ]
    found = bounds(index(text), {"i": Interval(0, 6), "j": Interval(0, 3)})
    assert found == Interval(min(values), max(values))


def test_what_is_read_from_a_stage_has_no_bounds():
    assert bounds(index("p[i] + 1"), {"i": Interval(0, 6)}) == ANY


@pytest.mark.parametrize(
    ("condition", "first", "second"),
    [
        ("i >= 2", (2, 9), (0, 1)),
        ("i > 2", (3, 9), (0, 2)),
        ("i < 5", (0, 4), (5, 9)),
        ("i <= 5", (0, 5), (6, 9)),
        ("(i >= 2) && (i < 5)", (2, 4), (0, 9)),
        ("(i >= 2) || (j < 5)", (0, 9), (0, 9)),
    ],
)
def test_guards_narrow_what_is_read_behind_them(condition, first, second):
    expression = index(f"tir.if_then_else({condition}, p[i], p[i])")
    found = list(accesses(expression, {"i": Interval(0, 9)}))
    assert [ranges["i"] for _, ranges in found] == [Interval(*first), Interval(*second)]
    assert len(found) == sum(isinstance(e, Access) for e in walk(expression))
