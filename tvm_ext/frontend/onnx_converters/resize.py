"""Resize and Upsample.

Two forms come out. Where TVM's ``relax.image.resize2d`` computes what ONNX asks for, that (later
passes know it). Otherwise one axis after the other: every output position is a sum of a few input
positions times weights, both of them constants, so it's ``take`` and ``multiply``.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.resize_taps import axis_taps
from tvm_ext.frontend.onnx_converters.values import (
    const,
    dtype_of,
    optional,
    required_constant,
    shape_of,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter

_MODES = ("nearest", "linear", "cubic")


@register_onnx_converter("Upsample")
def convert_upsample(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Upsample, the older name of Resize with asymmetric coordinates."""
    scales = attrs["scales"] if node.opset < 9 else required_constant(inputs[1], "scales")
    mode = {"bilinear": "linear", "trilinear": "linear"}.get(
        attrs.get("mode", "nearest"), attrs.get("mode", "nearest")
    )
    return _resized(
        bb,
        inputs[0],
        np.asarray(scales, "float32"),
        None,
        {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        None,
    )


@register_onnx_converter("Resize")
def convert_resize(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Resize with sizes or scales known at import, in every mode of opset 19."""
    if node.opset < 11:
        return convert_upsample(bb, inputs, attrs, node)
    data = inputs[0]
    rank = len(shape_of(data))
    axes = [a % rank for a in attrs.get("axes", range(rank))]
    scales = _spread(optional(inputs, 2), axes, np.ones(rank, "float32"), "scales")
    sizes = _spread(optional(inputs, 3), axes, np.asarray(shape_of(data), "int64"), "sizes")
    if (scales is None) == (sizes is None):
        raise ModelError("exactly one of 'scales' and 'sizes' must be given")
    roi = None
    if attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        given = required_constant(inputs[1], "roi").astype("float64")
        roi = np.stack([np.zeros(rank), np.ones(rank)])
        roi[:, axes] = given.reshape(2, -1)
    if sizes is not None:
        sizes, scales = _keep_aspect(attrs, shape_of(data), sizes, axes)
    return _resized(bb, data, scales, sizes, attrs, roi)


def _spread(
    expr: relax.Expr | None, axes: list[int], default: np.ndarray, what: str
) -> np.ndarray | None:
    """Return a value an axis from an input that has one for each of `axes`; None if it's absent."""
    # Files from opset 11 give an empty tensor for the one of scales and sizes they don't use.
    if expr is None or shape_of(expr) == (0,):
        return None
    full = default.copy()
    full[axes] = required_constant(expr, what)
    return full


def _keep_aspect(
    attrs: Attributes, shape: tuple[int, ...], sizes: np.ndarray, axes: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Apply ``keep_aspect_ratio_policy``; return the sizes and the scales they stand for."""
    policy = attrs.get("keep_aspect_ratio_policy", "stretch")
    scales = sizes / np.asarray(shape, "float64")
    if policy == "stretch":
        return sizes, scales
    common = (min if policy == "not_larger" else max)(scales[axes])
    sizes, scales = sizes.copy(), scales.copy()
    for axis in axes:
        scales[axis] = common
        # Half a pixel rounds up, unlike Python's round.
        sizes[axis] = int(np.floor(common * shape[axis] + 0.5))
    return sizes, scales


def _resized(
    bb: relax.BlockBuilder,
    data: relax.Expr,
    scales: np.ndarray,
    sizes: np.ndarray | None,
    attrs: Attributes,
    roi: np.ndarray | None,
) -> relax.Expr:
    mode = attrs.get("mode", "nearest")
    if mode not in _MODES:
        raise ModelError(f"mode is {mode!r}; it must be one of {', '.join(_MODES)}")
    dtype, shape = dtype_of(data), shape_of(data)
    if mode != "nearest" and dtype not in ("float32", "float64"):
        # The weights are fractions; whole numbers come out rounded towards zero.
        wide = bb.emit(relax.op.astype(data, "float32"))
        result = bb.emit(_resized(bb, wide, scales, sizes, attrs, roi))
        return relax.op.astype(result, dtype)
    if sizes is None:
        extents = np.asarray(shape) if roi is None else np.asarray(shape) * (roi[1] - roi[0])
        sizes = np.floor(extents * scales.astype("float64")).astype("int64")
    if _fits_resize2d(shape, scales, sizes, attrs, roi):
        return relax.op.image.resize2d(
            data,
            relax.ShapeExpr([int(s) for s in sizes[2:]]),
            layout="NCHW",
            method="nearest_neighbor" if mode == "nearest" else mode,
            coordinate_transformation_mode=_coordinates(attrs),
            rounding_method=attrs.get("nearest_mode", "round_prefer_floor"),
        )
    outside = np.zeros(())
    for axis, extent in enumerate(shape):
        if sizes[axis] == extent and scales[axis] == 1 and roi is None:
            continue
        bounds = (0.0, 1.0) if roi is None else tuple(roi[:, axis])
        indices, weights, beyond = axis_taps(
            extent, int(sizes[axis]), float(scales[axis]), bounds, attrs
        )
        data = _apply(bb, data, axis, indices, weights)
        column = [-1 if i == axis else 1 for i in range(len(shape))]
        outside = np.logical_or(outside, beyond.reshape(column))
    if outside.any():
        filler = np.asarray(attrs.get("extrapolation_value", 0.0), dtype_of(data))
        data = bb.emit(relax.op.where(const(outside, "bool"), const(filler), data))
    return data


def _apply(
    bb: relax.BlockBuilder,
    data: relax.Expr,
    axis: int,
    indices: np.ndarray,
    weights: np.ndarray,
) -> relax.Expr:
    """Sum ``data[indices[:, k]] * weights[:, k]`` along `axis` over the taps k."""
    column = [-1 if i == axis else 1 for i in range(len(shape_of(data)))]
    total = None
    for k in range(indices.shape[1]):
        term = bb.emit(relax.op.take(data, const(indices[:, k], "int64"), axis, mode="clip"))
        if not (weights[:, k] == 1).all():
            factor = const(weights[:, k].reshape(column), dtype_of(data))
            term = bb.emit(relax.op.multiply(term, factor))
        total = term if total is None else bb.emit(relax.op.add(total, term))
    return total


def _coordinates(attrs: Attributes) -> str:
    return attrs.get("coordinate_transformation_mode", "half_pixel")


def _fits_resize2d(
    shape: tuple[int, ...],
    scales: np.ndarray,
    sizes: np.ndarray,
    attrs: Attributes,
    roi: np.ndarray | None,
) -> bool:
    """Tell whether ``relax.image.resize2d`` gives ONNX's result.

    It derives the scale from the sizes, so they must agree exactly, and it only knows the common
    modes. It adds an epsilon before ``floor``, which whole-number scales don't notice.
    """
    whole = all(
        s == n * round(s / n) for s, n in zip(sizes.tolist(), shape, strict=True)
    ) and np.array_equal(scales, sizes / np.asarray(shape))
    common = (
        (_coordinates(attrs), attrs.get("nearest_mode", "round_prefer_floor"))
        in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))
        if attrs.get("mode", "nearest") == "nearest"
        else attrs["mode"] == "linear" and _coordinates(attrs) in ("half_pixel", "asymmetric")
    )
    return bool(
        len(shape) == 4
        and roi is None
        and whole
        and common
        and (sizes[:2] == shape[:2]).all()
        and not attrs.get("antialias", 0)
        and not attrs.get("exclude_outside", 0)
    )
