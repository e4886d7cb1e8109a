"""Channels through each operator that only moves elements, against NumPy's on channel numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm.relax import op

from tests.passes.pruning.channel_call import OneCall
from tvm_ext.passes.pruning.channel_moves import RULES

MOVES = {
    "flattened behind the channels": (lambda x: op.reshape(x, (2, 30)), (2, 6, 5), 1),
    "one dimension": (op.flatten, (1, 6, 1), 1),
    "taken apart again": (lambda x: op.reshape(x, (6, 5, 2)), (6, 10), 0),
    "axes of one element": (lambda x: op.expand_dims(x, [0, 3]), (2, 6), 1),
    "squeezed": (lambda x: op.squeeze(x, [0, 2]), (1, 6, 1, 3), 1),
    "to the end": (lambda x: op.permute_dims(x, [0, 2, 1]), (2, 6, 5), 1),
    "reversed": (op.permute_dims, (2, 6, 5), 1),
    "repeated along another axis": (lambda x: op.broadcast_to(x, (4, 6, 3)), (6, 1), 0),
}


@pytest.mark.parametrize(("make", "shape", "axis"), MOVES.values(), ids=MOVES)
def test_moves(make: Callable[[Any], Any], shape: tuple[int, ...], axis: int) -> None:
    one = OneCall(RULES, make, shape, axis)
    assert one.reason == ""
    for gone in ((), (0,), (1, 4), range(5)):
        one.check_shrunk(gone)


def test_channels_are_where_numpy_puts_them() -> None:
    for make, shape, axis in MOVES.values():
        OneCall(RULES, make, shape, axis).check_numbers()


def test_positions_in_front_of_channels_take_them_along() -> None:
    """(2, 6) as 12 has each channel twice."""
    one = OneCall(RULES, lambda x: op.reshape(x, (12,)), (2, 6), 1)
    np.testing.assert_array_equal(one.axes[0][0], [*range(6), *range(6)])
    one.check_shrunk((0, 5))


def test_channels_that_are_split_are_a_joint() -> None:
    """As in the middle of a shuffle; what is left has to be a box to have a shape."""
    one = OneCall(RULES, lambda x: op.reshape(x, (2, 2, 3, 5)), (2, 6, 5), 1)
    joint = one.step.result().joint
    assert joint is not None
    assert joint.axes == (1, 2)
    np.testing.assert_array_equal(joint.ids[joint.positions], [[0, 1, 2], [3, 4, 5]])


def test_a_broadcast_axis_has_no_channels() -> None:
    one = OneCall(RULES, lambda x: op.broadcast_to(x, (2, 6, 3)), (1, 6, 3), 1)
    np.testing.assert_array_equal(one.axes[0][1], one.ids)
    assert one.axes[0][0] is None


def test_a_tensor_without_elements_keeps_its_channels() -> None:
    one = OneCall(RULES, lambda x: op.reshape(x, (6, 0, 2)), (6, 0), 0)
    assert one.reason.endswith("has no elements")
    assert one.axes == [(None, None, None)]
