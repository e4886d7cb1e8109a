"""The cheapest layouts, against all combinations tried."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_ext.layout_search import Option, search


def _conversion(var, block, at_hand):
    return 0.0 if block in at_hand else 3.0


def _seconds(steps, results, choices):
    """The cost of a plan, counted step by step."""
    total, blocks = 0.0, {}
    for (var, _), option in zip(steps, choices, strict=True):
        total += option.seconds
        for read, block in option.reads:
            at_hand = blocks.setdefault(read, {0})
            total += _conversion(read, block, at_hand)
            at_hand.add(block)
        blocks[var] = {option.writes}
    return total + sum(_conversion(var, 0, blocks[var]) for var in results)


@st.composite
def _graphs(draw):
    steps = []
    for i in range(draw(st.integers(1, 6))):
        values = ["x", *(var for var, _ in steps)]
        reads = draw(st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True))
        options = [
            Option(draw(st.integers(0, 9)), tuple((var, b) for var in reads), out, (i, b, out))
            for b, out in draw(st.sets(st.tuples(*2 * [st.sampled_from((0, 8))]), min_size=1))
        ]
        steps.append((f"v{i}", options))
    return steps


@settings(deadline=None, max_examples=200)
@given(_graphs())
def test_no_combination_is_cheaper(steps):
    read = {var for _, options in steps for option in options for var, _ in option.reads}
    results = [var for var, _ in steps if var not in read]
    chosen = search(steps, results, _conversion)
    by_choice = {option.choice: option for _, options in steps for option in options}
    best = min(_seconds(steps, results, c) for c in product(*(o for _, o in steps)))
    assert _seconds(steps, results, [by_choice[c] for c in chosen]) == pytest.approx(best)


def test_many_results_do_not_crowd_out_what_comes_after_them():
    """Eight results, each as fast in blocks, which the end has to undo."""
    steps = [
        (f"v{i}", [Option(0, (("x", 0),), 8, (i, 8)), Option(1, (("x", 0),), 0, (i, 0))])
        for i in range(8)
    ]
    assert search(steps, [var for var, _ in steps], _conversion) == [(i, 0) for i in range(8)]


def test_a_slower_layer_pays_for_the_layouts_around_it():
    """Each of three layers is 2 slower in the model's order, and a conversion costs 3."""

    def options(reads):
        return [
            Option(5.0, ((reads, 8),), 8, "blocked"), Option(7.0, ((reads, 0),), 0, "plain"),
        ]  # fmt: skip

    steps = [("a", options("x")), ("b", [Option(1.0, (("a", 0),), 0, "only plain")])]
    assert search(steps, ["b"], _conversion) == ["plain", "only plain"]
    chain = [("a", options("x")), ("b", options("a")), ("c", options("b")), ("d", options("c"))]
    assert search(chain, ["d"], _conversion) == ["blocked"] * 4
