"""Pointers into what runs keep, one run behind the other."""

from __future__ import annotations

import numpy as np


def run_pointers(counts: np.ndarray, dtype: str = "int64") -> np.ndarray:
    """Where runs of so many begin, and where the last one ends: (runs + 1,)."""
    return np.concatenate([[0], counts.cumsum(dtype="int64")]).astype(dtype)
