"""Seeded random weights for the networks that the zoo writes itself."""

from __future__ import annotations

import numpy as np

ATTENTION_GAIN = 2.0
"""For query, key and value: scores of standard deviation 4, as peaked as trained attention's.

With a spread of 1 every token would get about the mean of all, whatever the input.
"""


def branch_gain(layers: int) -> float:
    """Keeps the sum along the 2 * `layers` branches of a transformer of order one, as GPT-2's
    own initialisation does."""
    return float(1.0 / np.sqrt(2 * layers))


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


def linear_weight(
    rng: np.random.Generator, inputs: int, outputs: int, gain: float = 1.0
) -> np.ndarray:
    """Draw (in, out) weights that turn inputs of variance 1 into outputs of variance gain**2."""
    return rng.standard_normal((inputs, outputs), np.float32) * np.float32(gain / np.sqrt(inputs))


def biases(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draw biases of standard deviation 0.1: small, but seen when they are lost."""
    return rng.normal(0.0, 0.1, size).astype(np.float32)


def layer_norm_scales(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draw scales between 0.5 and 1.5."""
    return rng.uniform(0.5, 1.5, size).astype(np.float32)
