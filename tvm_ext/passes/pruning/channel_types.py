"""Sets of tied channels that are alike: made by the same layers, in the same of their groups."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tvm_ext.passes.pruning.channel_ids import ChannelIds
from tvm_ext.passes.pruning.channel_step import Channels


@dataclass(frozen=True, eq=False)
class ChannelType:
    """Sets of channels that compete with each other.

    Attributes
    ----------
    roots : ndarray of int
        Of the sets, the least important first; only those that may go.
    size : int
        How many sets there are, those included that may not go as nothing would be left.
    groups : dict of (int, int) to int
        Number of a balanced layer and group of it -> how many of a set's channels are there.
    layers : tuple of str
        That make these channels.
    width : int
        The most channels of one layer that are in a set.
    """

    roots: np.ndarray
    size: int
    groups: dict[tuple[int, int], int]
    layers: tuple[str, ...]
    width: int


def channel_types(channels: Channels, scores: np.ndarray) -> list[ChannelType]:
    """Sort all sets that can go by what they have in common.

    Parameters
    ----------
    channels : Channels
    scores : ndarray
        Importance of each set, at its root.
    """
    ids, fixed = channels.ids, channels.ids.reasons()
    made: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for name, filters in channels.filters.items():
        for root, count in _counted(ids, filters):
            made[root].append((name, count))
    groups: dict[int, list[tuple[tuple[int, int], int]]] = defaultdict(list)
    for number, (_, table) in enumerate(channels.balanced):
        for group, members in enumerate(table):
            for root, count in _counted(ids, members):
                groups[root].append(((number, group), count))
    alike: dict[object, list[int]] = defaultdict(list)
    removable = np.zeros(len(ids), bool)
    for root, layers in made.items():
        if root not in fixed:
            removable[root] = True
            alike[tuple(layers), tuple(groups[root])].append(root)
    last = _indispensable(channels, scores, removable)
    types = []
    for roots in alike.values():
        free = np.array([root for root in roots if root not in last], int)
        free = free[np.argsort(scores[free], kind="stable")]
        layers, widths = zip(*made[roots[0]], strict=True)
        types.append(ChannelType(free, len(roots), dict(groups[roots[0]]), layers, max(widths)))
    return types


def systems(types: list[ChannelType]) -> list[list[ChannelType]]:
    """Types that have to lose channels together, as groups of a layer have some of each."""
    union = ChannelIds()
    numbers = union.fresh(len(types))
    first: dict[int, int] = {}
    for i, each in enumerate(types):
        for number, _ in each.groups:
            other = first.setdefault(number, i)
            union.tie(numbers[[i]], numbers[[other]])
    found: dict[int, list[ChannelType]] = defaultdict(list)
    for root, each in zip(union.roots(numbers), types, strict=True):
        found[int(root)].append(each)
    return list(found.values())


def _counted(ids: ChannelIds, members: np.ndarray) -> list[tuple[int, int]]:
    roots, counts = np.unique(ids.roots(members), return_counts=True)
    return list(zip(roots.tolist(), counts.tolist(), strict=True))


def _indispensable(channels: Channels, scores: np.ndarray, removable: np.ndarray) -> set[int]:
    """The most important set of each axis, where no other is sure to stay.

    Without it a part of a split could be empty.
    """
    found = set()
    for axis in channels.axes:
        roots = channels.ids.roots(axis)
        if removable[roots].all():
            found.add(int(roots[np.argmax(scores[roots])]))
    return found
