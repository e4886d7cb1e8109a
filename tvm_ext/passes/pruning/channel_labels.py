"""Which channel each index of a tensor's axes is, also behind reshapes and transpositions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

Axis = np.ndarray | None
"""The channel id of each index of an axis; None where none of them can go."""


@dataclass(frozen=True, eq=False)
class Joint:
    """Channels that several neighbouring axes share: in the middle of a channel shuffle.

    Attributes
    ----------
    base : Var
        The value that had them in one axis.
    axis : int
        Of `base`.
    ids : ndarray
        Of that axis.
    axes : tuple of int
        Of the value itself.
    positions : ndarray
        Of the shape of those axes, the index in `base`'s axis that each element has.
    """

    base: Any
    axis: int
    ids: np.ndarray
    axes: tuple[int, ...]
    positions: np.ndarray


@dataclass(frozen=True, eq=False)
class Labels:
    """The channels of a tensor.

    Attributes
    ----------
    axes : tuple of Axis
    joint : Joint, optional
    closing : tuple of (Joint, ndarray), optional
        Where a joint's axes have become one again, and the position that each index of it has.
    lost : tuple of ndarray
        Ids of channels that could not be followed into this tensor.
    """

    axes: tuple[Axis, ...]
    joint: Joint | None = None
    closing: tuple[Joint, np.ndarray] | None = None
    lost: tuple[np.ndarray, ...] = ()

    @classmethod
    def none(cls, rank: int) -> Labels:
        """A tensor without channels that can go."""
        return cls((None,) * rank)

    def ids(self) -> list[np.ndarray]:
        """The ids of all axes."""
        own = [axis for axis in self.axes if axis is not None]
        return own if self.joint is None else [*own, self.joint.ids]


@dataclass(frozen=True, eq=False)
class _Unit:
    """An axis, or the axes of a joint, before a reshape."""

    size: int
    ids: Axis
    axis: int
    joint: Joint | None = None


def reshaped(labels: Labels, value: Any, old: Sequence[int], new: Sequence[int]) -> Labels:
    """The labels of `value`, of shape `old` and with `labels`, reshaped to `new`.

    Axes are taken apart and put together as far as needed to account for both shapes. Channels
    whose elements are then no longer whole slices along an axis are a joint, or lost.
    """
    axes: list[Axis] = [None] * len(new)
    lost: list[np.ndarray] = []
    joint, closing = None, None
    for units, targets in _blocks(_units(labels, old), new):
        carriers = [unit for unit in units if unit.ids is not None]
        if not carriers:
            continue
        (carrier, *more) = carriers
        if more or (carrier.joint is not None and len(units) > 1):
            lost += [unit.ids for unit in carriers if unit.ids is not None]
            continue
        assert carrier.ids is not None
        shape, inner = [new[t] for t in targets], carrier.joint
        # A joint may have a channel twice, at two places of its base.
        line = carrier.ids if inner is None else inner.positions.reshape(-1)
        along = [unit.size if unit is carrier else 1 for unit in units]
        at = np.broadcast_to(line.reshape(along), [unit.size for unit in units]).reshape(shape)
        varying = [i for i in range(at.ndim) if (at != at.take([0], i)).any()]
        if len(varying) <= 1:
            (axis,) = varying or (0,)
            line = np.moveaxis(at, axis, 0).reshape(shape[axis], -1)[:, 0]
            axes[targets[axis]] = line if inner is None else inner.ids[line]
            closing = closing if inner is None else (inner, line)
        elif len(units) == 1 and joint is None:
            if inner is None:
                positions = np.arange(carrier.size).reshape(shape)
                joint = Joint(value, carrier.axis, carrier.ids, tuple(targets), positions)
            else:
                joint = Joint(inner.base, inner.axis, inner.ids, tuple(targets), at)
        else:
            lost.append(carrier.ids)
    return Labels(tuple(axes), joint, closing, tuple(lost))


def permuted(labels: Labels, order: Sequence[int], shape: Sequence[int]) -> Labels:
    """The labels after a transposition of a tensor of this shape.

    A joint is lost where anything else than its own axes changes places.
    """
    axes = tuple(labels.axes[a] for a in order)
    joint = labels.joint
    if joint is None:
        return Labels(axes)
    inside = set(joint.axes)
    # Axes of one element may stand anywhere.
    places = [-1 if a in inside else a for a in order if a in inside or shape[a] != 1]
    rest = [a for a in places if a != -1]
    first = places.index(-1)
    together = places[first : first + len(inside)] == [-1] * len(inside)
    before = sum(a < joint.axes[0] for a in rest)
    if not together or rest != sorted(rest) or before != first:
        return Labels(axes, lost=(joint.ids,))
    moved = [a for a in order if a in inside]
    positions = joint.positions.transpose([joint.axes.index(a) for a in moved])
    at = tuple(i for i, a in enumerate(order) if a in inside)
    return Labels(axes, Joint(joint.base, joint.axis, joint.ids, at, positions))


def _units(labels: Labels, shape: Sequence[int]) -> list[_Unit]:
    joint, units = labels.joint, []
    for axis, (size, ids) in enumerate(zip(shape, labels.axes, strict=True)):
        if joint is not None and axis in joint.axes:
            if axis == joint.axes[0]:
                units.append(_Unit(joint.positions.size, joint.ids, axis, joint))
        elif size != 1:
            units.append(_Unit(size, ids, axis))
    return units


def _blocks(units: Sequence[_Unit], new: Sequence[int]) -> list[tuple[list[_Unit], list[int]]]:
    """Runs of units and of new axes with equally many elements, as short as possible."""
    targets = [axis for axis, size in enumerate(new) if size != 1]
    blocks = []
    i = j = 0
    while i < len(units):
        start, other = i, j
        i, j = i + 1, j + 1
        while True:
            size = prod(unit.size for unit in units[start:i])
            wanted = prod(new[t] for t in targets[other:j])
            if size == wanted:
                break
            i, j = (i + 1, j) if size < wanted else (i, j + 1)
        blocks.append((list(units[start:i]), targets[other:j]))
    return blocks
