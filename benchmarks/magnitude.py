"""Weights pruned by magnitude alone, in NumPy: zeros for the benchmarks, apart from our passes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LANES = 16
"""Filters that share their zeros in `block16`."""
ENTRIES, PATTERNS = 4, 8
"""Weights that a 3x3 kernel keeps in `pattern`, and how many patterns there are in a layer."""


def unstructured(weights: np.ndarray, density: float) -> np.ndarray:
    """Keep the weights of the largest magnitude, wherever they are."""
    return np.where(
        _largest(np.abs(weights).reshape(-1), density).reshape(weights.shape), weights, 0
    )


def block16(weights: np.ndarray, density: float) -> np.ndarray:
    """Of every `LANES` filters keep the columns (input channel and tap) of the largest norm."""
    matrix = weights.reshape(len(weights), -1)
    panels = []
    for first in range(0, len(matrix), LANES):
        panel = matrix[first : first + LANES]
        panels.append(np.where(_largest(np.linalg.norm(panel, axis=0), density), panel, 0))
    return np.concatenate(panels).reshape(weights.shape)


def pattern(weights: np.ndarray, density: float) -> np.ndarray:
    """Keep 3x3 kernels of the largest norm, and of each `ENTRIES` weights in a common pattern.

    A kernel's own pattern are its centre and the largest weights beside it; the most frequent ones
    are the layer's, of which each kernel takes that with the largest norm.

    Raises
    ------
    ValueError
        Kernels of another size, or a density beyond `ENTRIES` of 9.
    """
    if weights.shape[2:] != (3, 3) or density > ENTRIES / 9:
        raise ValueError(
            f"kernels of {weights.shape[2:]} at density {density}; patterns of {ENTRIES} weights "
            f"are for 3x3 kernels and densities up to {ENTRIES / 9:.3f}"
        )
    energy = weights.reshape(-1, 9).astype("f8") ** 2
    ranked = energy.copy()
    ranked[:, 4] = np.inf
    own = np.sort(np.argsort(-ranked, axis=1)[:, :ENTRIES], axis=1)
    found, counts = np.unique(own, axis=0, return_counts=True)
    common = found[np.argsort(-counts, kind="stable")[:PATTERNS]]
    masks = np.zeros((len(common), 9), bool)
    np.put_along_axis(masks, common, True, axis=1)
    kept = energy @ masks.T
    mask = (
        masks[np.argmax(kept, axis=1)] & _largest(kept.max(axis=1), density * 9 / ENTRIES)[:, None]
    )
    return np.where(mask.reshape(weights.shape), weights, 0)


SCHEMES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "unstructured": unstructured,
    "block16": block16,
    "pattern": pattern,
}


def prune(weights: np.ndarray, scheme: str, density: float) -> np.ndarray:
    """Set all but a share of the weights to zero.

    Parameters
    ----------
    weights : ndarray
        (filters, ...).
    scheme : str
        A key of `SCHEMES`.
    density : float
        Share that stays, in (0, 1]; at least one weight, column or kernel does.

    Returns
    -------
    ndarray
        New weights of the same shape and dtype.

    Raises
    ------
    ValueError
        An unknown scheme, a density out of range, or one that the scheme can't have.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme {scheme!r}; there are: {', '.join(SCHEMES)}")
    if not 0 < density <= 1:
        raise ValueError(f"density {density}; it must be above 0 and at most 1")
    return SCHEMES[scheme](weights, density).astype(weights.dtype)


def _largest(scores: np.ndarray, density: float) -> np.ndarray:
    """A mask of the `density` of the scores that are largest, exactly as many."""
    count = max(1, round(density * len(scores)))
    mask = np.zeros(len(scores), bool)
    mask[np.argpartition(-scores, count - 1)[:count]] = True
    return mask
