"""Activations: parameters of any kind, and formulas that neither cancel nor overflow."""

from __future__ import annotations

from tvm import relax

from tvm_ext.frontend.onnx_converters.values import (
    const,
    constant,
    scalar,
    shape_of,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


@register_onnx_converter("PRelu")
def convert_prelu(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert PRelu: one slope, one a channel, or any shape that broadcasts to the input's."""
    data, slope = inputs
    rank = len(shape_of(data))
    value = constant(slope)
    if value is not None and value.size == 1:
        return relax.op.nn.leakyrelu(data, value.item())
    shape = (1,) * (rank - len(shape_of(slope))) + shape_of(slope)
    long_axes = [axis for axis, extent in enumerate(shape) if extent != 1]
    if value is not None and len(long_axes) == 1:
        return relax.op.nn.prelu(data, const(value.reshape(-1)), long_axes[0])
    negative = bb.emit(relax.op.less(data, scalar(0, data)))
    return relax.op.where(negative, bb.emit(relax.op.multiply(data, slope)), data)


@register_onnx_converter("ThresholdedRelu")
def convert_thresholded_relu(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert ThresholdedRelu by selection: a product with a mask makes NaN of infinity."""
    above = bb.emit(relax.op.greater(inputs[0], scalar(attrs.get("alpha", 1.0), inputs[0])))
    return relax.op.where(above, inputs[0], scalar(0, inputs[0]))


def _exponential_below_zero(
    bb: relax.BlockBuilder, x: relax.Expr, alpha: float, width: float
) -> relax.Expr:
    """x where positive, alpha (e**(x / width) - 1) where negative."""
    negative = bb.emit(relax.op.less(x, scalar(0, x)))
    inner = x if width == 1 else bb.emit(relax.op.divide(x, scalar(width, x)))
    exponential = bb.emit(relax.op.exp(inner))
    below = bb.emit(relax.op.subtract(exponential, scalar(1, x)))
    return relax.op.where(negative, bb.emit(relax.op.multiply(scalar(alpha, x), below)), x)


@register_onnx_converter("Elu")
def convert_elu(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Elu in the input's own precision."""
    return _exponential_below_zero(bb, inputs[0], attrs.get("alpha", 1.0), 1.0)


@register_onnx_converter("Celu")
def convert_celu(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Celu in the input's own precision."""
    alpha = attrs.get("alpha", 1.0)
    return _exponential_below_zero(bb, inputs[0], alpha, alpha)


@register_onnx_converter("Selu")
def convert_selu(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Selu in the input's own precision."""
    elu = _exponential_below_zero(bb, inputs[0], attrs.get("alpha", _SELU_ALPHA), 1.0)
    return relax.op.multiply(scalar(attrs.get("gamma", _SELU_GAMMA), inputs[0]), bb.emit(elu))


@register_onnx_converter("Softplus")
def convert_softplus(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Softplus to the operator, whose kernel keeps e**x far below zero."""
    return relax.op.nn.softplus(inputs[0])


@register_onnx_converter("Mish")
def convert_mish(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert ``x * tanh(softplus(x))``."""
    soft = bb.emit(relax.op.nn.softplus(inputs[0]))
    return relax.op.multiply(inputs[0], bb.emit(relax.op.tanh(soft)))
