"""Rank correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's rank correlation: 1 for the same order, -1 for the reverse; equal values share.

    NaN when all values of a sequence are equal.
    """
    first, second = _ranks(a), _ranks(b)
    first, second = first - first.mean(), second - second.mean()
    norm = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / norm if norm else float("nan")


def _ranks(values: Sequence[float]) -> np.ndarray:
    """From 0; equal values have the mean of their places."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts) - 1
    return (last - (counts - 1) / 2)[inverse]
