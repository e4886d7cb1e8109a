"""Sets of channels that are alike, on examples worked by hand."""

from __future__ import annotations

import numpy as np

from tvm_ext.passes.pruning.channel_step import Channels
from tvm_ext.passes.pruning.channel_types import ChannelType, channel_types, systems


def made(**counts: int) -> Channels:
    """Layers of so many filters."""
    channels = Channels({}, {}, False)
    for name, count in counts.items():
        channels.filters[name] = channels.ids.fresh(count)
    return channels


def types_of(channels: Channels, scores: list[float] | None = None) -> list[ChannelType]:
    count = len(channels.ids)
    return channel_types(channels, np.arange(count) if scores is None else np.array(scores))


def test_channels_of_a_layer_compete_least_important_first() -> None:
    a, b = types_of(made(a=3, b=2), [5, 1, 3, 2, 2])
    assert (a.layers, a.size, a.width, a.groups) == (("a",), 3, 1, {})
    np.testing.assert_array_equal(a.roots, [1, 2, 0])
    # Of equal scores the earlier one.
    np.testing.assert_array_equal(b.roots, [3, 4])


def test_tied_channels_are_a_type_of_their_own() -> None:
    """Two channels of a are also b's, and one of a is twice in c."""
    channels = made(a=4, b=2, c=2)
    a, b, c = channels.filters.values()
    channels.ids.tie(a[:2], b)
    channels.ids.tie(c, a[[3, 3]])
    found = {each.layers: each for each in types_of(channels)}
    assert set(found) == {("a", "b"), ("a",), ("a", "c")}
    np.testing.assert_array_equal(found["a", "b"].roots, [0, 1])
    np.testing.assert_array_equal(found["a",].roots, [2])
    np.testing.assert_array_equal(found["a", "c"].roots, [3])
    assert found["a", "c"].width == 2


def test_fixed_channels_are_left_out_with_all_that_are_tied_to_them() -> None:
    channels = made(a=3, b=3)
    a, b = channels.filters.values()
    channels.ids.tie(a[:1], b[2:])
    channels.ids.fix(b[2:], "an output")
    assert [x.roots.tolist() for x in types_of(channels)] == [[1, 2], [3, 4]]
    channels.ids.fix(np.arange(6), "all of them")
    assert types_of(channels) == []


def test_the_most_important_of_an_axis_that_may_lose_all_stays() -> None:
    channels = made(a=4)
    a = channels.filters["a"]
    channels.axes += [a[:2], a]
    (only,) = types_of(channels, [7, 3, 9, 1])
    np.testing.assert_array_equal(only.roots, [3, 1])
    assert only.size == 4
    # An axis of which something is fixed needs no other.
    channels.ids.fix(a[1:2], "read elsewhere")
    (only,) = types_of(channels, [7, 3, 9, 1])
    np.testing.assert_array_equal(only.roots, [3, 0, 2])


def test_groups_of_a_layer_are_systems() -> None:
    """Both groups of a lose as many, and so do what is tied to them; c is by itself."""
    channels = made(a=4, b=2, c=2)
    a, b, _ = channels.filters.values()
    channels.balanced.append(("a", a.reshape(2, 2)))
    channels.ids.tie(a[2:], b)
    found = types_of(channels)
    assert [(x.layers, x.groups) for x in found] == [
        (("a",), {(0, 0): 1}), (("a", "b"), {(0, 1): 1}), (("c",), {})
    ]  # fmt: skip
    assert [[x.layers for x in part] for part in systems(found)] == [
        [("a",), ("a", "b")], [("c",)]
    ]  # fmt: skip


def test_systems_are_joined_by_a_common_layer_only() -> None:
    def of(*numbers: int) -> ChannelType:
        groups = {(number, 0): 1 for number in numbers}
        return ChannelType(np.arange(1), 1, groups, ("a",), 1)

    first, second, third, fourth = of(0), of(1), of(0, 1), of(2)
    assert systems([first, second]) == [[first], [second]]
    assert systems([first, second, third, fourth]) == [[first, second, third], [fourth]]
    assert systems([]) == []
