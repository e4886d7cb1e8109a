"""Calls on tensors that have lost channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import count
from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.pruning.channel_labels import Axis, Joint
from tvm_ext.passes.pruning.channel_step import Step


class Shrink:
    """Which channels are kept, and what follows for shapes and constants.

    Parameters
    ----------
    kept : ndarray of bool
        For each id.
    joints : sequence of Joint
        Of all values.
    """

    def __init__(self, kept: np.ndarray, joints: Sequence[Joint]) -> None:
        self.kept = kept
        # A value that can't be made takes the others with it that have its base.
        self._gathered = {j.base for j in joints if not _is_box(kept[j.ids][j.positions])}
        self._made: dict[Any, Any] = {}

    def mask(self, axis: Axis) -> np.ndarray | None:
        """Which indices of an axis are kept, None for all."""
        if axis is None or self.kept[axis].all():
            return None
        return self.kept[axis]

    def size(self, axis: Axis, before: int) -> int:
        """The extent that is left."""
        mask = self.mask(axis)
        return before if mask is None else int(mask.sum())

    def shape(self, step: Step) -> list[int]:
        """The shape that a call's result has now."""
        labels, before = step.result(), df.shape_of(step.var)
        sizes = [self.size(a, n) for a, n in zip(labels.axes, before, strict=True)]
        if labels.joint is not None:
            left = self.kept[labels.joint.ids][labels.joint.positions]
            for i, axis in enumerate(labels.joint.axes):
                sizes[axis] = int(_along(left, i).sum())
        return sizes

    def places(self, mask: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Where those of some indices of an axis are now that are kept."""
        return (np.cumsum(mask) - 1)[before[mask[before]]]

    def is_gathered(self, joint: Joint | None) -> bool:
        """Whether values with a joint aren't made: what is left of its axes is no box."""
        return joint is not None and joint.base in self._gathered

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made for a key; layers that share a constant still do afterwards."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def cut(self, constant: Any, axes: tuple[Axis, ...]) -> Any:
        """What is left of a constant; itself if that is all."""
        masks = [self.mask(axis) for axis in axes]
        if all(mask is None for mask in masks):
            return constant

        def make() -> Any:
            array = np.asarray(df.value_of(constant))
            for axis, mask in enumerate(masks):
                array = array if mask is None else array.compress(mask, axis)
            return df.constant(array)

        key = constant, *(None if mask is None else mask.tobytes() for mask in masks)
        return self.once(key, make)

    def call(self, step: Step, call: relax.Call) -> relax.Call:
        """The step's operator on what became of its arguments (`call`), with constants cut."""
        numbers = count()

        def shrunken(arg: Any) -> Any:
            if isinstance(arg, relax.Tuple):
                return relax.Tuple([shrunken(field) for field in arg.fields])
            if not isinstance(arg.ty, relax.TensorType):
                return arg
            labels = step.channels.constants.get((step.var, next(numbers)))
            return arg if labels is None else self.cut(arg, labels.axes)

        return relax.Call(call.op, [shrunken(a) for a in call.args], call.attrs, call.ty_args)


def _along(left: np.ndarray, axis: int) -> np.ndarray:
    """At which indices of an axis anything is left."""
    return left.any(tuple(a for a in range(left.ndim) if a != axis))


def _is_box(left: np.ndarray) -> bool:
    """Whether the same is left of each line along an axis, or nothing."""
    lines = (_along(left, axis) for axis in range(left.ndim))
    return bool((left == reduce(np.logical_and.outer, lines)).all())


def take(value: Any, places: np.ndarray, axis: int) -> Any:
    """Some indices of an axis, in this order."""
    return relax.op.take(value, df.constant(places.astype("int64")), axis, mode="clip")
