"""Channels behind reshapes and transpositions, against NumPy's on an array of channel numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_ext.passes.pruning.channel_labels import Labels, permuted, reshaped


def labelled(shape, axis):
    """Labels of a tensor with channels 100, 101, ... along one axis."""
    ids = np.arange(shape[axis]) + 100
    return Labels(tuple(ids if i == axis else None for i in range(len(shape))))


def spread(labels, shape):
    """For each element the channel that the labels give it; -1 where they give none."""
    found = np.full(shape, -1)
    for i, ids in enumerate(labels.axes):
        if ids is not None:
            found = np.broadcast_to(
                ids.reshape([-1 if k == i else 1 for k in range(len(shape))]), shape
            )
    if labels.joint is not None:
        axes, inside = labels.joint.axes, labels.joint.ids[labels.joint.positions]
        found = np.broadcast_to(
            inside.reshape([shape[i] if i in axes else 1 for i in range(len(shape))]), shape
        )
    return found


def numbers(shape, axis):
    """The channel of each element of the tensor that `labelled` labels."""
    ids = np.arange(shape[axis]) + 100
    return np.broadcast_to(ids.reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape)


@pytest.mark.parametrize(
    ("old", "axis", "new"),
    [
        ((2, 6, 3, 3), 1, (2, 54)),
        ((2, 54), 1, (2, 6, 3, 3)),
        ((1, 6, 1, 1), 1, (6,)),
        ((2, 6), 1, (1, 2, 1, 6, 1)),
        ((2, 6, 4), 1, (12, 4)),
        ((5, 6), 1, (30,)),
        ((2, 6, 4), 1, (2, 2, 3, 4)),
        ((2, 6, 4), 1, (2, 3, 2, 2, 2)),
        ((12, 4), 0, (2, 6, 4)),
    ],
)
def test_reshapes(old, axis, new):
    labels = reshaped(labelled(old, axis), "value", old, new)
    assert labels.lost == ()
    np.testing.assert_array_equal(spread(labels, new), numbers(old, axis).reshape(new))


def test_channels_that_repeat_are_one_axis_again():
    """(6, 9) -> (54,) -> (6, 3, 3): channels are blocks of the long axis."""
    flat = reshaped(labelled((6, 9), 0), "value", (6, 9), (54,))
    again = reshaped(flat, "flat", (54,), (6, 3, 3))
    assert again.joint is None
    np.testing.assert_array_equal(again.axes[0], np.arange(6) + 100)


def test_blocks_across_two_axes_with_channels_are_lost():
    labels = Labels((np.arange(4), np.arange(4, 7)))
    after = reshaped(labels, "value", (4, 3), (12,))
    assert after.axes == (None,)
    assert sorted(np.concatenate(after.lost).tolist()) == list(range(7))


def test_part_of_a_joint_with_positions_is_lost():
    labels = reshaped(labelled((6, 4), 0), "value", (6, 4), (2, 3, 4))
    after = reshaped(labels, "joint", (2, 3, 4), (2, 12))
    assert after.axes == (None, None)
    np.testing.assert_array_equal(after.lost[0], np.arange(6) + 100)


@given(st.integers(2, 4), st.integers(2, 4), st.integers(1, 3), st.booleans())
def test_shuffles(groups, each, width, ones):
    """Reshape, transpose, reshape; with axes of one element in between or not."""
    old = (2, groups * each, width)
    new = (2, 1, groups, each, width) if ones else (2, groups, each, width)
    order = [0, 3, 1, 2, 4] if ones else [0, 2, 1, 3]
    labels = reshaped(labelled(old, 1), "value", old, new)
    expected = numbers(old, 1).reshape(new)
    assert labels.joint is not None and labels.joint.base == "value"
    labels, expected = permuted(labels, order, new), expected.transpose(order)
    np.testing.assert_array_equal(spread(labels, expected.shape), expected)
    closed = reshaped(labels, "transposed", expected.shape, old)
    np.testing.assert_array_equal(spread(closed, old), expected.reshape(old))
    joint, positions = closed.closing
    assert joint.base == "value"
    np.testing.assert_array_equal(joint.ids[positions], closed.axes[1])


@pytest.mark.parametrize("order", [[1, 0, 2, 3], [0, 1, 3, 2], [3, 0, 1, 2], [1, 2, 0, 3]])
def test_joints_that_leave_their_place_are_lost(order):
    old, new = (2, 6, 4), (2, 3, 2, 4)
    labels = permuted(reshaped(labelled(old, 1), "value", old, new), order, new)
    assert labels.joint is None
    np.testing.assert_array_equal(labels.lost[0], np.arange(6) + 100)


def test_a_transposition_moves_channels_along():
    labels = permuted(labelled((2, 6, 4), 1), [2, 0, 1], (2, 6, 4))
    np.testing.assert_array_equal(labels.axes[2], np.arange(6) + 100)
    assert labels.axes[:2] == (None, None)
