"""Channels through each operator that joins and cuts axes, against NumPy's on channel numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm.relax import op

from tests.passes.pruning.channel_call import OneCall
from tests.passes.relax_models import array, const
from tvm_ext.passes.pruning.channel_slices import RULES

SHAPE = (2, 6, 5)
PLACES = np.array([5, 0, 0, 3])


def sliced(axes: list[int], begin: list[int], end: list[int], *steps: list[int]) -> Any:
    return lambda x: op.strided_slice(x, axes, begin, end, *steps)


CUTS = {
    "joined to itself": lambda x: op.concat([x, x], 1),
    "joined along positions": lambda x: op.concat([x, x, x], 2),
    "halves": lambda x: op.split(x, 2, 1),
    "unequal parts": lambda x: op.split(x, [2], 1),
    "parts of positions": lambda x: op.split(x, [2], -1),
    "a run": sliced([1], [1], [5]),
    "every second": sliced([1], [0], [6], [2]),
    "backwards to the first": sliced([1], [5], [-(1 << 31)], [-1]),
    "channels and positions": sliced([1, 2], [2, 1], [6, 4]),
    "positions backwards": sliced([1, 2], [0, 4], [4, -(1 << 31)], [1, -2]),
    "flipped": lambda x: op.flip(x, 1),
    "flipped positions": lambda x: op.flip(x, 2),
    "gathered": lambda x: op.take(x, const(PLACES), 1),
    "gathered positions": lambda x: op.take(x, const(np.array([4, 4])), 2),
    "padded positions": lambda x: op.nn.pad(x, [0, 0, 0, 0, 2, 1]),
}


@pytest.mark.parametrize("make", CUTS.values(), ids=CUTS)
def test_cuts(make: Callable[[Any], Any]) -> None:
    one = OneCall(RULES, make, SHAPE, 1)
    assert one.reason == ""
    # Something is left of each part.
    for gone in ((), (0,), (1, 2), (2, 4)):
        one.check_shrunk(gone)


# Padding has no channel's number.
@pytest.mark.parametrize("name", [name for name in CUTS if name != "padded positions"])
def test_channels_are_where_numpy_puts_them(name: str) -> None:
    OneCall(RULES, CUTS[name], SHAPE, 1).check_numbers()


def test_the_only_channel_of_a_part_stays() -> None:
    one = OneCall(RULES, lambda x: op.split(x, [1, 4], 1), SHAPE, 1)
    reasons = one.channels.ids.reasons()
    assert [int(i) for i in one.ids if int(i) in reasons] == [0]
    assert reasons[0].endswith("has no other channel")
    one.check_shrunk((2, 4))


def test_padded_channels_have_numbers_of_their_own() -> None:
    one = OneCall(RULES, lambda x: op.nn.pad(x, [0, 0, 2, 1, 0, 0], pad_value=3.0), SHAPE, 1)
    np.testing.assert_array_equal(one.axes[0][1], [6, 7, *range(6), 8])
    one.check_shrunk((0, 3))
    # As where a shortcut is added to a layer of more channels.
    one.channels.ids.tie(one.ids[:3], np.array([6, 7, 8]))
    one.check_shrunk((1, 5))


def test_channels_that_join_others_make_them_stay() -> None:
    """The other part is a constant, of which any index could go; or is the input itself."""
    one = OneCall(RULES, lambda x: op.concat([x, const(array(0, 2, 3, 5))], 1), SHAPE, 1)
    assert len(one.axes[0][1]) == 9
    assert one.reason == ""
    one.check_shrunk((0, 5))
    other = OneCall(RULES, lambda x: op.concat([x, const(array(0, 2, 1, 5))], 1), SHAPE, 1)
    fixed = other.channels.ids.reasons()
    assert fixed[int(other.axes[0][1][6])].endswith("joins them to channels that can go")
    assert other.reason == ""
    other.check_shrunk((0, 5))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda x: op.take(x, const(np.array([[0, 1]])), 1), "gathers some of them"),
        (lambda x: op.take(x, const(np.array([0, 6])), 1), "gathers some of them"),
        (lambda x: op.take(x, const(np.array([-1])), 1), "gathers some of them"),
        (lambda x: op.take(x, const(np.array([3]))), "reads all elements as one axis"),
        (lambda x: op.nn.pad(x, [0, 0, 1, 1, 0, 0], "reflect"), "pads them with one another"),
    ],
)
def test_reasons(make: Callable[[Any], Any], why: str) -> None:
    shape = (6,) if "one axis" in why else SHAPE
    one = OneCall(RULES, make, shape, len(shape) // 2)
    assert why in one.reason
    assert all(axis is None for axes in one.axes for axis in axes)
