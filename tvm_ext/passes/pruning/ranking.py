"""Keeping the largest scores: exactly so many, ties go to the earlier one."""

from __future__ import annotations

from math import floor

import numpy as np


def count_of(density: float, total: int) -> int:
    """How many of `total` a density keeps: the nearest number, but at least one."""
    return min(total, max(1, floor(density * total + 0.5)))


def largest(scores: np.ndarray, count: int) -> np.ndarray:
    """The `count` largest of all scores.

    Returns
    -------
    ndarray of bool
        Of the shape of `scores`.
    """
    flat = scores.reshape(-1)
    if count >= flat.size:
        return np.ones(scores.shape, bool)
    if count <= 0:
        return np.zeros(scores.shape, bool)
    least = np.partition(flat, flat.size - count)[flat.size - count]
    kept = flat > least
    ties = np.flatnonzero(flat == least)[: count - np.count_nonzero(kept)]
    kept[ties] = True
    return kept.reshape(scores.shape)


def largest_filling(scores: np.ndarray, sizes: np.ndarray, total: float) -> np.ndarray:
    """The largest scores whose sizes come nearest to a total, at least one of them.

    Parameters
    ----------
    scores : ndarray
    sizes : ndarray of int
        Of the same shape; what has size 0 isn't taken.
    total : float

    Returns
    -------
    ndarray of bool
        Of the shape of `scores`.
    """
    flat, weight = scores.reshape(-1), sizes.reshape(-1)
    there = np.flatnonzero(weight)
    kept = np.zeros(flat.shape, bool)
    if (weight[there] == weight[there[0]]).all():
        share = total / (int(weight[there[0]]) * there.size)
        kept[there] = largest(flat[there], count_of(share, there.size))
        return kept.reshape(scores.shape)
    order = there[np.argsort(-flat[there], kind="stable")]
    ends = np.cumsum(weight[order])
    count = max(1, int(np.searchsorted(ends - weight[order] / 2, total, side="right")))
    kept[order[:count]] = True
    return kept.reshape(scores.shape)


def largest_in_rows(scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The largest scores along the last axis.

    Parameters
    ----------
    scores : ndarray
        (..., n).
    counts : ndarray of int
        How many to keep; of a shape that broadcasts against that of `scores` without its last axis.

    Returns
    -------
    ndarray of bool
        Of the shape of `scores`.
    """
    order = np.argsort(-scores, axis=-1, kind="stable")
    kept = np.empty(scores.shape, bool)
    first = np.arange(scores.shape[-1]) < np.asarray(counts)[..., None]
    np.put_along_axis(kept, order, np.broadcast_to(first, scores.shape), axis=-1)
    return kept
