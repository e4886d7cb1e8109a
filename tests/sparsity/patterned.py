"""Weights whose kernels keep one of a few patterns of taps, or nothing."""

from __future__ import annotations

from math import prod

import numpy as np


def patterned(
    shape: tuple[int, ...], patterns: int = 6, entries: int = 4, connectivity: float = 0.6,
    seed: int = 0,
) -> np.ndarray:  # fmt: skip
    """Random (filters, channels, *kernel) float32 weights.

    So many random patterns of so many taps; a share of `connectivity` of the kernels keeps one.
    """
    rng = np.random.default_rng(seed)
    taps = prod(shape[2:])
    masks = np.zeros((patterns, taps), bool)
    for mask in masks:
        mask[rng.choice(taps, min(entries, taps), replace=False)] = True
    kept = masks[rng.integers(patterns, size=shape[:2])]
    kept &= rng.random((*shape[:2], 1)) < connectivity
    values = rng.uniform(0.5, 1.5, kept.shape) * rng.choice([-1, 1], kept.shape)
    return np.where(kept, values, 0).astype("float32").reshape(shape)
