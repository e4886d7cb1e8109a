"""Tensors seen with their axes split and in another order, without moving anything yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import shape_of


@dataclass(frozen=True)
class View:
    """``permute_dims(reshape(source, shape), order)``, not emitted yet.

    The reshape only splits axes: `shape` has one run of extents for each axis of the source.
    """

    source: relax.Expr
    shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def form(self) -> tuple[tuple[int, ...], ...]:
        """What two views must share to be computed with each other in front of them."""
        source = shape_of(self.source)
        return (self.order,) if source == self.shape else (self.order, self.shape, source)


def split_runs(shape: Sequence[int], split: Sequence[int]) -> list[tuple[int, ...]] | None:
    """Which axes of `split` each axis of `shape` became; None if they don't come of splitting.

    >>> split_runs((1, 32, 7), (1, 2, 16, 7))
    [(0,), (1, 2), (3,)]
    """
    runs: list[tuple[int, ...]] = []
    at = 0
    for axis, size in enumerate(shape):
        begin, found = at, 1
        # Every axis has one extent at least, and leaves one for each that follows.
        left = len(shape) - axis - 1
        while at < len(split) - left and (at == begin or found < size):
            found *= split[at]
            at += 1
        if found != size:
            return None
        runs.append(tuple(range(begin, at)))
    return runs if at == len(split) else None


def before_view(known: np.ndarray, view: View) -> np.ndarray:
    """A constant that meets a view, as it meets the view's source."""
    known = known.reshape((1,) * (len(view.order) - known.ndim) + known.shape)
    known = known.transpose(np.argsort(view.order))
    shape = shape_of(view.source)
    if view.shape == shape:
        return known
    extents: list[int] = []
    merged: list[int] = []
    for run in split_runs(shape, view.shape) or []:
        one = all(known.shape[axis] == 1 for axis in run)
        extents += [1 if one else view.shape[axis] for axis in run]
        merged.append(1 if one else int(np.prod([view.shape[axis] for axis in run])))
    return np.broadcast_to(known, extents).reshape(merged)
