"""Normalisations. Scales and shifts keep the shapes that ``relax.nn`` operators want."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import (
    along_channels,
    const,
    constant,
    dtype_of,
    optional,
    scalar,
    shape_of,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


@register_onnx_converter("BatchNormalization")
def convert_batch_norm(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert BatchNormalization at inference to ``relax.nn.batch_norm``."""
    if attrs.get("training_mode", 0):
        raise ModelError("training_mode=1: export the model for inference")
    if not attrs.get("spatial", 1):
        raise ModelError("spatial=0 isn't supported")
    data, scale, shift, mean, variance = inputs[:5]
    if dtype_of(scale) != dtype_of(data) or dtype_of(mean) != dtype_of(data):
        raise ModelError(
            f"mixed dtypes: data {dtype_of(data)}, scale {dtype_of(scale)}, mean {dtype_of(mean)}"
        )
    normalized = bb.emit(
        relax.op.nn.batch_norm(
            data,
            scale,
            shift,
            mean,
            variance,
            axis=1,
            epsilon=attrs.get("epsilon", 1e-5),
            momentum=attrs.get("momentum", 0.9),
            training=False,
        )
    )
    return relax.TupleGetItem(normalized, 0)


@register_onnx_converter("InstanceNormalization")
def convert_instance_norm(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert InstanceNormalization: each channel of each image by its own mean and variance."""
    data, scale, shift = inputs[:3]
    rank = len(shape_of(data))
    normalized = _standardize(bb, data, list(range(2, rank)), attrs.get("epsilon", 1e-5))[0]
    scaled = bb.emit(relax.op.multiply(normalized, along_channels(scale, rank)))
    return relax.op.add(scaled, along_channels(shift, rank))


@register_onnx_converter("LayerNormalization")
def convert_layer_norm(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> list[relax.Expr]:
    """Convert LayerNormalization, with its mean and inverse deviation if they're wanted."""
    data, scale, shift = inputs[0], inputs[1], optional(inputs, 2)
    shape = shape_of(data)
    axis = attrs.get("axis", -1) % len(shape)
    axes = list(range(axis, len(shape)))
    epsilon = attrs.get("epsilon", 1e-5)
    if dtype_of(data) == "float64":  # for which TVM has no such operator
        out, *statistics = _standardize(bb, data, axes, epsilon)
        out = bb.emit(relax.op.multiply(out, scale))
        out = out if shift is None else bb.emit(relax.op.add(out, shift))
        return [out, *statistics] if any(node.outputs[1:]) else [out]
    if shift is None:
        shift = const(np.zeros(shape[axis:], dtype_of(data)))
    out = relax.op.nn.layer_norm(
        data,
        _broadcast(bb, scale, shape[axis:]),
        _broadcast(bb, shift, shape[axis:]),
        axes=axes,
        epsilon=epsilon,
    )
    if any(node.outputs[1:]):
        return [out, *_standardize(bb, data, axes, epsilon)[1:]]
    return [out]


@register_onnx_converter("RMSNormalization")
def convert_rms_norm(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert RMSNormalization: ``x / sqrt(mean(x**2) + epsilon) * scale``."""
    data, scale = inputs[:2]
    shape = shape_of(data)
    axis = attrs.get("axis", -1) % len(shape)
    axes = list(range(axis, len(shape)))
    epsilon = attrs.get("epsilon", 1e-5)
    if dtype_of(data) == "float64":  # for which TVM has no such operator
        square = bb.emit(relax.op.multiply(data, data))
        inverse = _inverse_root(bb, bb.emit(relax.op.mean(square, axes, keepdims=True)), epsilon)
        return relax.op.multiply(bb.emit(relax.op.multiply(data, inverse)), scale)
    return relax.op.nn.rms_norm(data, _broadcast(bb, scale, shape[axis:]), axes, epsilon)


@register_onnx_converter("LRN")
def convert_lrn(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert LRN: ``x / (bias + alpha * mean of x**2 over neighbouring channels) ** beta``."""
    data = inputs[0]
    shape = shape_of(data)
    pools = (relax.op.nn.avg_pool1d, relax.op.nn.avg_pool2d, relax.op.nn.avg_pool3d)
    spatial = shape[2:] if 1 <= len(shape[2:]) <= len(pools) else (int(np.prod(shape[2:])),)
    if spatial != shape[2:]:
        data = bb.emit(relax.op.reshape(data, (*shape[:2], *spatial)))
    square = bb.emit(relax.op.multiply(data, data))
    mean = bb.emit(_channel_mean(pools[len(spatial) - 1], square, attrs["size"]))
    scaled = bb.emit(relax.op.multiply(mean, scalar(attrs.get("alpha", 1e-4), data)))
    base = bb.emit(relax.op.add(scaled, scalar(attrs.get("bias", 1.0), data)))
    power = bb.emit(relax.op.power(base, scalar(attrs.get("beta", 0.75), data)))
    out = relax.op.divide(data, power)
    return out if spatial == shape[2:] else relax.op.reshape(bb.emit(out), shape)


def _channel_mean(pool: Any, data: relax.Expr, size: int) -> relax.Expr:
    """The mean of `size` neighbouring channels for each, zeros past the ends.

    To the pool the channels are the first spatial axis, and the last dimension the channels.
    """
    before = (size - 1) // 2
    ones, zeros = (1,) * (len(shape_of(data)) - 3), (0,) * (len(shape_of(data)) - 3)
    return pool(
        data,
        (size, *ones),
        padding=(before, *zeros, size - 1 - before, *zeros),
        count_include_pad=True,
        layout="N" + "DHW"[2 - len(ones) :] + "C",
    )


@register_onnx_converter("LpNormalization")
def convert_lp_normalization(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert LpNormalization: divide by the 1- or 2-norm along one axis."""
    data = inputs[0]
    axis = attrs.get("axis", -1)
    if attrs.get("p", 2) == 1:
        norm = bb.emit(relax.op.sum(bb.emit(relax.op.abs(data)), axis, keepdims=True))
    else:
        square = bb.emit(relax.op.multiply(data, data))
        norm = bb.emit(relax.op.sqrt(bb.emit(relax.op.sum(square, axis, keepdims=True))))
    # The standard wants 0 where the norm is 0.
    zero = bb.emit(relax.op.equal(norm, scalar(0, data)))
    norm = bb.emit(relax.op.where(zero, scalar(1, data), norm))
    return relax.op.divide(data, norm)


def _standardize(
    bb: relax.BlockBuilder, data: relax.Expr, axes: list[int], epsilon: float
) -> tuple[relax.Expr, relax.Expr, relax.Expr]:
    """Return data of mean 0 and variance 1 over `axes`, the mean, and the inverse deviation."""
    mean = bb.emit(relax.op.mean(data, axes, keepdims=True))
    centred = bb.emit(relax.op.subtract(data, mean))
    square = bb.emit(relax.op.multiply(centred, centred))
    inverse = _inverse_root(bb, bb.emit(relax.op.mean(square, axes, keepdims=True)), epsilon)
    return bb.emit(relax.op.multiply(centred, inverse)), mean, inverse


def _inverse_root(bb: relax.BlockBuilder, variance: relax.Expr, epsilon: float) -> relax.Expr:
    root = bb.emit(relax.op.sqrt(bb.emit(relax.op.add(variance, scalar(epsilon, variance)))))
    return bb.emit(relax.op.divide(scalar(1, variance), root))


def _broadcast(bb: relax.BlockBuilder, expr: relax.Expr, shape: tuple[int, ...]) -> relax.Expr:
    if shape_of(expr) == shape:
        return expr
    value = constant(expr)
    if value is None:
        return bb.emit(relax.op.broadcast_to(expr, shape))
    return const(np.broadcast_to(value, shape))
