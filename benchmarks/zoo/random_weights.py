"""Seeded random weights for the networks that the zoo writes itself."""

from __future__ import annotations

import numpy as np


def conv_weight(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw He-scaled weights, OIHW or (out, in), float32."""
    return rng.normal(0.0, np.sqrt(2.0 / np.prod(shape[1:])), shape).astype(np.float32)


def batch_norm_parameters(rng: np.random.Generator, channels: int) -> list[np.ndarray]:
    """Draw scale and bias, and give mean 0 and variance 1 for calibration to replace.

    The scale is below 1, so that the sum along a residual network's branches stays O(1).
    """
    values = (
        rng.uniform(0.5, 0.9, channels),
        rng.normal(0.0, 0.1, channels),
        np.zeros(channels),
        np.ones(channels),
    )
    return [value.astype(np.float32) for value in values]
