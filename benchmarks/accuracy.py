"""How far an engine's outputs are from another's."""

from __future__ import annotations

from typing import Any

import numpy as np


def max_relative_error(actual: Any, expected: Any) -> float:
    """Compare outputs, each by its largest difference over its largest magnitude.

    Parameters
    ----------
    actual, expected : numpy.ndarray or sequence of numpy.ndarray
        One output or all outputs of a model, in the same order and of the same shapes.

    Returns
    -------
    float
        The largest over the outputs of ``max|actual - expected| / max|expected|``; infinite when
        a value of `actual` is not finite. Where `expected` is all zero, the largest difference.

    Raises
    ------
    ValueError
        If the numbers of outputs, or the shapes of an output, differ.
    """
    actual, expected = _as_list(actual), _as_list(expected)
    if len(actual) != len(expected):
        raise ValueError(f"{len(actual)} outputs against {len(expected)}")
    worst = 0.0
    for i, (got, want) in enumerate(zip(actual, expected, strict=True)):
        got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
        if got.shape != want.shape:
            raise ValueError(f"output {i} has shape {got.shape}, expected {want.shape}")
        if not np.isfinite(got).all():
            return float("inf")
        scale = np.abs(want).max() or 1.0
        worst = max(worst, float(np.abs(got - want).max() / scale))
    return worst


def _as_list(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
