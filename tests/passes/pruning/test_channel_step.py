"""What rules do with the channels of a call: worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tvm.relax import op

from tests.passes.pruning.channel_call import OneCall
from tests.passes.relax_models import array, const
from tvm_ext.passes.pruning.channel_labels import Joint, Labels
from tvm_ext.passes.pruning.channel_pointwise import ELEMENTWISE
from tvm_ext.passes.pruning.channel_step import Channels, each

ADD = {"relax.add": ELEMENTWISE}


@pytest.fixture
def one() -> OneCall:
    """``x + c`` of six channels, where c has as many."""
    return OneCall(ADD, lambda x: op.add(x, const(array(0, 6, 1))), (2, 6, 3), 1)


def test_labels_of_nested_tuples_in_order() -> None:
    a, b, c = (Labels.none(rank) for rank in (1, 2, 3))
    assert each(a) == (a,)
    assert each((a, (b, c), ())) == (a, b, c)


def test_reasons_name_the_operator_and_the_variable(one: OneCall) -> None:
    assert one.step.name == f"add {one.var.name}"
    one.step.fix([None, one.ids[2:3]], "needs it")
    assert one.channels.ids.reasons() == {2: f"add {one.var.name} needs it"}


def test_indices_of_constants_have_channels_of_their_own_once(one: OneCall) -> None:
    labels = one.step.labels(1)
    assert labels is one.step.labels(1)
    assert labels.axes[1] is None
    # The rule has tied them to the tensor's.
    np.testing.assert_array_equal(one.channels.ids.roots(labels.axes[0]), one.ids)


def test_merging_ties_channels_and_fixes_them_where_some_stay(one: OneCall) -> None:
    ids, step = one.channels.ids, one.step
    a, b, c = ids.fresh(2), ids.fresh(2), ids.fresh(2)
    assert step.merge([]) is None
    assert step.merge([a]) is a
    assert step.merge([a, b]) is a
    np.testing.assert_array_equal(ids.roots(b), a)
    assert step.merge([c, None]) is None
    assert set(ids.reasons()) == set(c.tolist())


def test_only_some_axes_pass(one: OneCall) -> None:
    a, b = (one.channels.ids.fresh(2) for _ in range(2))
    passed = one.step.only([a, None, b], [0, 1], "stops them")
    assert passed == (a, None, None)
    assert set(one.channels.ids.reasons()) == set(b.tolist())


def _joint(ids: np.ndarray, base: str = "base") -> Labels:
    """Six channels on two axes of 2 and 3."""
    return Labels((None, None), joint=Joint(base, 0, ids, (0, 1), np.arange(6).reshape(2, 3)))


def test_axes_that_share_channels_keep_them_where_single_axes_are_read(one: OneCall) -> None:
    one.channels.values[one.param] = Labels(
        (None, None, None), joint=Joint("base", 0, one.ids, (0, 1), np.arange(6).reshape(2, 3))
    )
    assert one.step.axes() == [None, None, None]
    assert one.reason.endswith("reads them split over axes")


@pytest.mark.parametrize("boxes", [False, True])
def test_boxes_tie_channels_at_the_same_place_of_all_groups(one: OneCall, boxes: bool) -> None:
    channels = Channels({}, {}, boxes)
    ids = channels.ids.fresh(6)
    channels.record(one.var, _joint(ids))
    # Of 2 groups of 3, whole indices go of the longer axis: 0 with 3, 1 with 4, 2 with 5.
    expected = [0, 1, 2, 0, 1, 2] if boxes else range(6)
    np.testing.assert_array_equal(channels.ids.roots(ids), expected)
    assert len(channels.joints) == 1


def test_of_joints_with_the_same_base_the_first_ties() -> None:
    channels = Channels({}, {}, True)
    one = OneCall(ADD, lambda x: op.add(x, x), (2, 6), 1)
    ids = channels.ids.fresh(6)
    base = "base"
    channels.record(one.var, _joint(ids, base))
    turned = Joint(base, 0, ids, (0, 1), np.arange(6).reshape(2, 3).T)
    channels.record(one.var, Labels((None, None), joint=turned))
    np.testing.assert_array_equal(channels.ids.roots(ids), [0, 1, 2, 0, 1, 2])
    assert len(channels.joints) == 2


def test_channels_that_were_lost_or_are_alone_stay(one: OneCall) -> None:
    channels = Channels({}, {}, False)
    lost, alone, free = channels.ids.fresh(2), channels.ids.fresh(1), channels.ids.fresh(3)
    channels.record(one.var, (Labels((free, None), lost=(lost,)), Labels((alone,))))
    name = one.var.name
    assert channels.ids.reasons() == {
        0: f"{name} splits them over axes", 1: f"{name} splits them over axes",
        2: f"{name} has no other channel",
    }  # fmt: skip
    assert [a.tolist() for a in channels.axes] == [free.tolist(), alone.tolist()]
