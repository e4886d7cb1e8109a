"""Tied channels against sets that are merged one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tvm_ext.passes.pruning.channel_ids import ChannelIds

_PAIRS = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=8)


@given(st.lists(_PAIRS, max_size=6))
def test_sets_are_those_of_merging_one_by_one(batches):
    ids = ChannelIds()
    channels = ids.fresh(20)
    sets = [{i} for i in range(20)]
    for batch in batches:
        left, right = (np.array([pair[k] for pair in batch], int) for k in (0, 1))
        ids.tie(channels[left], channels[right])
        for a, b in batch:
            union = sets[a] | sets[b]
            for i in union:
                sets[i] = union
    assert ids.roots(channels).tolist() == [min(s) for s in sets]


def test_the_first_reason_for_any_channel_of_a_set_counts():
    ids = ChannelIds()
    a, b, c = (ids.fresh(2) for _ in range(3))
    ids.fix(b, "the second")
    ids.fix(a[:1], "the first")
    ids.tie(a, b)
    ids.tie(b[1:], c[:1])
    assert ids.reasons() == {int(a[0]): "the second", int(a[1]): "the second"}
    assert len(ids) == 6
    assert ids.roots(c).tolist() == [int(a[1]), int(c[1])]
