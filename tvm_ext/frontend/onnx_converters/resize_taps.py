"""The arithmetic of ONNX Resize along one axis: which input positions, with which weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_ext.errors import ModelError


def axis_taps(
    size: int,
    out_size: int,
    scale: float,
    roi: tuple[float, float],
    attrs: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sum that each output position is.

    Parameters
    ----------
    size, out_size : int
        Extent of the axis before and after.
    scale : float
        What ONNX calls the scale, about ``out_size / size``.
    roi : tuple of float
        Begin and end of the region, as fractions (used by ``tf_crop_and_resize`` only).
    attrs : dict
        The attributes of Resize.

    Returns
    -------
    indices, weights : np.ndarray
        (out_size, taps); ``out[i] = sum_k in[indices[i, k]] * weights[i, k]``.
    outside : np.ndarray
        (out_size,) bool: positions that ``tf_crop_and_resize`` fills with a constant.
    """
    transform = attrs.get("coordinate_transformation_mode", "half_pixel")
    x = _source_positions(
        np.arange(out_size, dtype="float64"), size, out_size, scale, roi, transform
    )
    outside = np.zeros(out_size, bool)
    if transform == "tf_crop_and_resize":
        outside = (x < 0) | (x > size - 1)
    mode = attrs.get("mode", "nearest")
    if mode == "nearest":
        rounded = _rounded(x, attrs.get("nearest_mode", "round_prefer_floor"))
        indices = rounded.clip(0, size - 1).astype("int64")[:, None]
        return indices, np.ones(indices.shape), outside

    # Antialiasing stretches the filter over all that one output pixel covers.
    shrink = min(scale, 1.0) if attrs.get("antialias", 0) else 1.0
    radius = (1 if mode == "linear" else 2) / shrink
    first = np.floor(x - radius).astype("int64") + 1
    taps = int(np.floor(x + radius).astype("int64").max() - first.min()) if shrink < 1 else 0
    taps = int(np.ceil(2 * radius)) if not taps else min(taps, int(np.ceil(2 * radius)) + 1)
    indices = first[:, None] + np.arange(taps)
    distance = np.abs(indices - x[:, None]) * shrink
    if mode == "linear":
        weights = np.maximum(1 - distance, 0)
    else:
        weights = _cubic(distance, attrs.get("cubic_coeff_a", -0.75))
    if attrs.get("exclude_outside", 0):
        weights = np.where((indices < 0) | (indices >= size), 0, weights)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return indices.clip(0, size - 1), weights, outside


def _source_positions(
    x: np.ndarray,
    size: int,
    out_size: int,
    scale: float,
    roi: tuple[float, float],
    transform: str,
) -> np.ndarray:
    if transform == "half_pixel":
        return (x + 0.5) / scale - 0.5
    if transform == "half_pixel_symmetric":
        # The output was rounded down to whole pixels: keep both images' centres together.
        adjustment = out_size / (scale * size)
        return size / 2 * (1 - adjustment) + (x + 0.5) / scale - 0.5
    if transform == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if out_size > 1 else np.zeros_like(x)
    if transform == "asymmetric":
        return x / scale
    if transform == "align_corners":
        # Its own length, before rounding down, spans the input.
        length = size * scale
        return x * (size - 1) / (length - 1) if out_size > 1 else np.zeros_like(x)
    if transform == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if transform == "tf_crop_and_resize":
        begin, end = roi
        if out_size > 1:
            return begin * (size - 1) + x * (end - begin) * (size - 1) / (out_size - 1)
        return np.full_like(x, 0.5 * (begin + end) * (size - 1))
    raise ModelError(f"coordinate_transformation_mode {transform!r} isn't supported")


def _rounded(x: np.ndarray, mode: str) -> np.ndarray:
    if mode == "round_prefer_floor":
        return np.ceil(x - 0.5)
    if mode == "round_prefer_ceil":
        return np.floor(x + 0.5)
    if mode == "floor":
        return np.floor(x)
    if mode == "ceil":
        return np.ceil(x)
    raise ModelError(f"nearest_mode {mode!r} isn't supported")


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Return Keys' cubic convolution kernel with parameter `a` (Keys 1981, equation 15)."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))
