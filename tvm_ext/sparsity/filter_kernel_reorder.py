"""Filter kernel reorder: filters that do about the same stand next to each other."""

from __future__ import annotations

import numpy as np


def filter_order(counts: np.ndarray) -> np.ndarray:
    """Filters by how many kernels they keep, and then by likeness of their patterns.

    Among filters of one length, the next one is always that of the nearest mix of patterns: the
    one in which the fewest kernels have another pattern.

    Parameters
    ----------
    counts : ndarray of int
        (filters, patterns): how many kernels of a filter have each pattern.

    Returns
    -------
    ndarray of int64
        (filters,): the filter at each place.

    Notes
    -----
    Niu et al., "PatDNN" (2020), and XGen (2022, section 2.3.1).
    """
    lengths = counts.sum(axis=1)
    order = [
        _chain(np.flatnonzero(lengths == length), counts) for length in np.unique(lengths).tolist()
    ]
    return np.concatenate([np.arange(0), *order])


def _chain(filters: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The filters in an order in which each is followed by the nearest of those that are left."""
    left, mixes = filters, counts[filters].astype("int64")
    chain = []
    at = 0
    while True:
        chain.append(left[at])
        here = mixes[at]
        left, mixes = np.delete(left, at), np.delete(mixes, at, axis=0)
        if not len(left):
            return np.array(chain)
        at = int(np.abs(mixes - here).sum(axis=1).argmin())
