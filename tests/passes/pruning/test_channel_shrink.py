"""Shapes, constants and places when channels are gone, against NumPy's compress."""

from __future__ import annotations

import numpy as np
import pytest
from tvm.relax import op

from tests.passes.pruning.channel_call import OneCall
from tests.passes.relax_models import array, const
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.pruning.channel_labels import Joint
from tvm_ext.passes.pruning.channel_moves import RULES
from tvm_ext.passes.pruning.channel_pointwise import ELEMENTWISE
from tvm_ext.passes.pruning.channel_shrink import Shrink, take

KEPT = np.array([True, False, True, True, False, True])
AXIS = np.arange(6)


@pytest.fixture
def shrink() -> Shrink:
    return Shrink(KEPT, [])


def joint(positions: np.ndarray, base: str = "base") -> Joint:
    return Joint(base, 0, AXIS, tuple(range(positions.ndim)), positions)


def test_masks_and_sizes(shrink: Shrink) -> None:
    assert shrink.mask(None) is None
    assert shrink.mask(AXIS[[0, 2]]) is None
    mask = shrink.mask(AXIS[::-1])
    assert mask is not None
    np.testing.assert_array_equal(mask, KEPT[::-1])
    assert shrink.size(None, 9) == 9
    assert shrink.size(AXIS[2:4], 2) == 2
    assert shrink.size(AXIS, 6) == 4
    assert shrink.size(np.array([1, 4]), 2) == 0


def test_places_of_those_that_are_kept(shrink: Shrink) -> None:
    before = np.array([5, 1, 0, 3, 5])
    values = np.arange(6) * 10
    np.testing.assert_array_equal(
        values[KEPT][shrink.places(KEPT, before)], values[before][KEPT[before]]
    )
    assert len(shrink.places(KEPT, np.array([1, 4]))) == 0


def test_constants_are_cut_along_all_their_axes(shrink: Shrink) -> None:
    whole = array(0, 6, 3, 6)
    constant = const(whole)
    assert shrink.cut(constant, (None, None, None)) is constant
    assert shrink.cut(constant, (AXIS[[0, 0, 2, 2, 3, 3]], None, None)) is constant
    found = shrink.cut(constant, (AXIS, None, AXIS[::-1]))
    expected = whole.compress(KEPT, 0).compress(KEPT[::-1], 2)
    np.testing.assert_array_equal(df.value_of(found), expected)


def test_a_constant_is_cut_once_for_all_its_readers(shrink: Shrink) -> None:
    constant = const(array(0, 6, 6))
    first = shrink.cut(constant, (AXIS, None))
    assert shrink.cut(constant, (AXIS, None)) is first
    assert shrink.cut(constant, (None, AXIS)) is not first
    assert shrink.cut(const(array(0, 6, 6)), (AXIS, None)) is not first
    assert shrink.once("key", lambda: 1) == shrink.once("key", lambda: 2) == 1


@pytest.mark.parametrize(
    ("positions", "box"),
    [
        ([[0, 1, 2], [3, 4, 5]], True),
        ([[0, 1], [2, 3], [4, 5]], False),
        ([[0, 2], [3, 5]], True),
        ([[0, 1], [2, 3]], False),
        ([[1, 4]], True),
    ],
)
def test_what_is_left_of_a_joint_is_a_box_or_gathered(
    positions: list[list[int]], box: bool
) -> None:
    """Of a box the same columns are left in each row, or nothing; 1 and 4 are gone."""
    whole = joint(np.array(positions))
    assert Shrink(KEPT, [whole]).is_gathered(whole) != box


def test_a_joint_takes_those_of_its_base_along() -> None:
    broken, whole = joint(np.array([[0, 1], [2, 3]])), joint(np.array([[0, 2], [3, 5]]))
    other = joint(np.array([[0, 2], [3, 5]]), "other")
    shrink = Shrink(KEPT, [broken, whole, other])
    assert shrink.is_gathered(whole)
    assert not shrink.is_gathered(other)
    assert not shrink.is_gathered(None)


def test_shapes() -> None:
    flat = OneCall(RULES, lambda x: op.reshape(x, (2, 30)), (2, 6, 5), 1)
    assert Shrink(KEPT, []).shape(flat.step) == [2, 20]
    split = OneCall(RULES, lambda x: op.reshape(x, (2, 2, 3, 5)), (2, 6, 5), 1)
    kept = np.array([True, False, True, True, False, True])
    assert Shrink(kept, split.channels.joints).shape(split.step) == [2, 2, 2, 5]


def test_calls_get_constants_that_are_cut() -> None:
    bias = array(0, 6, 1)
    one = OneCall({"relax.add": ELEMENTWISE}, lambda x: op.add(const(bias), x), (2, 6, 3), 1)
    roots = one.channels.ids.roots(np.arange(len(one.channels.ids)))
    new = Shrink(KEPT[roots], []).call(one.step, one.call)
    np.testing.assert_array_equal(df.value_of(new.args[0]), bias[KEPT])
    assert new.args[1].same_as(one.param)


def test_gathers_clip_places_that_are_sure() -> None:
    one = OneCall(RULES, op.flatten, (6,), 0)
    call = take(one.param, np.array([3, 0]), 0)
    assert call.attrs.mode == "clip"
    assert df.value_of(call.args[1]).dtype == "int64"
