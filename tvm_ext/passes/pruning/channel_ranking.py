"""Which channels to remove: the least important ones, as many of each group of a layer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil, gcd

import numpy as np

from tvm_ext.passes.pruning.channel_step import Channels
from tvm_ext.passes.pruning.channel_types import ChannelType, channel_types, systems

NORMS = ("l1", "l2")


def importance(channels: Channels, norm: str) -> np.ndarray:
    """The norms of all filters that make a set's channels, summed; float64, at the set's root.

    Parameters
    ----------
    norm : str
        One of `NORMS`.
    """
    ids, scores = channels.ids, np.zeros(len(channels.ids))
    layers = {layer.name: layer for layer in channels.layers.values()}
    for name, filters in channels.filters.items():
        weights = layers[name].weights
        flat = weights.reshape(len(weights), -1).astype("float64")
        norms = np.linalg.norm(flat, 1 if norm == "l1" else 2, axis=1)
        np.add.at(scores, ids.roots(filters), norms)
    return scores


@dataclass(frozen=True, eq=False)
class Selection:
    """The channels that stay.

    Attributes
    ----------
    channels : Channels
    kept : ndarray of bool
        For each id.
    notes : dict of str to str
        For each layer why all its filters stay, or many of them; else empty.
    """

    channels: Channels
    kept: np.ndarray
    notes: dict[str, str]

    @property
    def removed(self) -> int:
        """How many filters go, of all layers together."""
        return sum(int((~self.kept[ids]).sum()) for ids in self.channels.filters.values())


def keep_channels(channels: Channels, norm: str, density: float, multiple: int) -> Selection:
    """Choose the channels that stay.

    Parameters
    ----------
    density : float
        Share to keep of the channels that compete, in (0, 1].
    multiple : int
        Their number is rounded up to a multiple of this.
    """
    ids = channels.ids
    gone = np.zeros(len(ids), bool)
    notes = dict.fromkeys(channels.filters, "")
    for system in systems(channel_types(channels, importance(channels, norm))):
        total = sum(each.size * each.width for each in system)
        wanted = multiple * ceil(ceil(density * total - 1e-9) / multiple)
        counts = _shares(channels, system, max(0, total - wanted))
        for each, count in zip(system, counts, strict=True):
            gone[each.roots[:count]] = True
        if not any(counts):
            note = f"{total} channels are ranked together, of which density {density} keeps "
            note += f"{min(total, wanted)}"
            if wanted < total:
                note += "; no number less can go from each group alike"
            notes.update({name: note for each in system for name in each.layers})
    roots = ids.roots(np.arange(len(ids)))
    fixed = ids.reasons()
    for name, filters in channels.filters.items():
        stay = Counter(fixed[r] for r in ids.roots(filters).tolist() if r in fixed)
        if stay:
            reason, count = stay.most_common(1)[0][0], stay.total()
            every = count == len(filters)
            notes[name] = reason if every else f"{count} of {len(filters)} stay: {reason}"
    return Selection(channels, ~gone[roots], notes)


def _shares(channels: Channels, system: list[ChannelType], budget: int) -> list[int]:
    """How many sets of each type go: as many as the budget of channels allows, alike of each group.

    They are multiples of balanced sums: in proportion to the types' sizes, or one of each type that
    is large enough. The sum that alone takes most comes first, others fill up what it leaves.
    """
    sizes = np.array([each.size for each in system])
    widths = np.array([each.width for each in system])
    left = np.array([len(each.roots) for each in system])
    units = [sizes // gcd(*sizes.tolist()), *((sizes >= size).astype(int) for size in set(sizes))]
    units = [unit for unit in units if _balanced(channels, system, unit)]

    def times(unit: np.ndarray) -> int:
        some = unit > 0
        return min(int((left[some] // unit[some]).min()), budget // int(widths @ unit))

    counts = np.zeros(len(system), int)
    for unit in sorted(units, key=lambda unit: times(unit) * int(widths @ unit), reverse=True):
        often = times(unit)
        counts += often * unit
        left -= often * unit
        budget -= often * int(widths @ unit)
    return counts.tolist()


def _balanced(channels: Channels, system: list[ChannelType], unit: np.ndarray) -> bool:
    """Whether all groups of each layer lose as many channels."""
    lost: Counter[tuple[int, int]] = Counter()
    for each, times in zip(system, unit.tolist(), strict=True):
        for group, count in each.groups.items():
            lost[group] += times * count
    # A group of which nothing can go is in none of the types, and loses nothing.
    groups = {number: len(channels.balanced[number][1]) for number, _ in lost}
    return all(len({lost[n, g] for g in range(count)}) == 1 for n, count in groups.items())
