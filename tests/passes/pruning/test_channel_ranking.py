"""Which channels go, on examples worked by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tvm_ext.passes.pruning.channel_ranking import importance, keep_channels
from tvm_ext.passes.pruning.channel_step import Channels


def channels_of(**norms):
    """Layers whose filters have one weight each: its magnitude is the norm."""
    layers = {
        name: SimpleNamespace(name=name, weights=np.array(values, "float32").reshape(-1, 1))
        for name, values in norms.items()
    }
    channels = Channels(layers, {}, True)
    for name, values in norms.items():
        channels.filters[name] = channels.ids.fresh(len(values))
    return channels


def kept(channels, density, multiple=1):
    """The filters that each layer keeps."""
    chosen = keep_channels(channels, "l1", density, multiple)
    return {n: np.flatnonzero(chosen.kept[ids]).tolist() for n, ids in channels.filters.items()}


def test_norms_of_tied_filters_are_added():
    channels = channels_of(a=[1, -4, 2], b=[5, 1, 1])
    channels.ids.tie(channels.filters["a"], channels.filters["b"])
    assert importance(channels, "l1")[:3].tolist() == [6, 5, 3]
    assert kept(channels, 0.5) == {"a": [0, 1], "b": [0, 1]}


@pytest.mark.parametrize(("norm", "score"), [("l1", 7), ("l2", 5)])
def test_norms(norm, score):
    channels = channels_of(a=[0])
    channels.layers["a"].weights = np.array([[3.0, -4.0]])
    assert importance(channels, norm).tolist() == [score]


def test_equal_norms_keep_the_later_ones():
    assert kept(channels_of(a=[1, 1, 1, 1]), 0.5) == {"a": [2, 3]}


@pytest.mark.parametrize(
    ("density", "multiple", "count"), [(0.55, 1, 11), (0.5, 4, 12), (0.01, 1, 1), (0.95, 16, 20)]
)
def test_how_many_stay(density, multiple, count):
    """Of 20 channels; 0.55 * 20 is a little more than 11 in floating point."""
    assert len(kept(channels_of(a=range(20)), density, multiple)["a"]) == count


def test_groups_lose_as_many_each():
    channels = channels_of(a=[1, 2, 3, 4, 5, 6])
    channels.balanced.append(("g", channels.filters["a"].reshape(2, 3)))
    assert kept(channels, 0.5) == {"a": [1, 2, 4, 5]}


def test_groups_of_unlike_parts_lose_in_proportion():
    """Two layers are joined and read in two groups: 4 + 2 of the first, then 6 of the second."""
    channels = channels_of(a=range(6), b=range(10, 16))
    joined = np.concatenate([channels.filters["a"], channels.filters["b"]])
    channels.balanced += [
        ("g", joined.reshape(2, 6)),
        ("a", channels.filters["a"].reshape(3, 2)),
    ]
    assert kept(channels, 0.5) == {"a": [1, 3, 5], "b": [3, 4, 5]}


def test_a_channel_that_spans_groups_stays_if_others_can_be_balanced():
    channels = channels_of(a=range(10), b=range(10))
    filters = channels.filters["a"]
    # The fourth and fifth of the first group go with one of the second each.
    channels.ids.tie(filters[4:5], filters[5:6])
    channels.balanced.append(("g", filters.reshape(2, 5)))
    channels.ids.fix(channels.filters["b"], "an output")
    assert kept(channels, 0.4) == {"a": [3, 4, 5, 9], "b": list(range(10))}


def test_groups_of_which_one_is_fixed_lose_nothing():
    channels = channels_of(a=[1, 2, 3, 4])
    filters = channels.filters["a"]
    channels.ids.fix(filters[:2], "an output")
    channels.balanced.append(("g", filters.reshape(2, 2)))
    chosen = keep_channels(channels, "l1", 0.5, 1)
    assert chosen.kept.all() and chosen.removed == 0
    assert chosen.notes == {"a": "2 of 4 stay: an output"}


def test_the_most_important_channel_of_an_axis_stays():
    channels = channels_of(a=[1, 2, 3, 4, 5, 6])
    filters = channels.filters["a"]
    channels.axes.append(filters[:3])
    assert kept(channels, 0.5) == {"a": [2, 4, 5]}


def test_notes_say_why_nothing_went():
    channels = channels_of(a=range(6), b=range(8))
    channels.balanced.append(("g", channels.filters["b"].reshape(4, 2)))
    notes = keep_channels(channels, "l1", 0.7, 8).notes
    assert notes["a"] == "6 channels are ranked together, of which density 0.7 keeps 6"
    notes = keep_channels(channels, "l1", 0.7, 1).notes
    assert notes["a"] == ""
    assert notes["b"].endswith("keeps 6; no number less can go from each group alike")
