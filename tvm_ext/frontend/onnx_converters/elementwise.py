"""Element-wise operators: activations with parameters, Pow of mixed types, Dropout."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import (
    const,
    constant,
    dtype_of,
    optional,
    scalar,
    shape_of,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


@register_onnx_converter("Clip")
def convert_clip(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Clip; either bound may be missing. Two known bounds become ``relax.clip``."""
    data = inputs[0]
    if node.opset < 11:
        bounds = [
            const(np.asarray(attrs[name], dtype_of(data))) if name in attrs else None
            for name in ("min", "max")
        ]
    else:
        bounds = [optional(inputs, 1), optional(inputs, 2)]
    values = [constant(bound) for bound in bounds]
    low, high = (None if value is None else value.item() for value in values)
    # relax.clip carries its bounds as doubles: wide integers would lose digits.
    if low is not None and high is not None and low <= high and "64" not in dtype_of(data):
        return relax.op.clip(data, low, high)
    if bounds[0] is not None:
        data = bb.emit(relax.op.maximum(data, bounds[0]))
    if bounds[1] is not None:
        data = bb.emit(relax.op.minimum(data, bounds[1]))
    return data


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


@register_onnx_converter("Dropout")
def convert_dropout(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> list[relax.Expr]:
    """Convert Dropout at inference: the input itself, and a mask that keeps everything."""
    training = optional(inputs, 2)
    if training is not None:
        value = constant(training)
        if value is None or value.item():
            raise ModelError("training_mode must be constant false")
    results = [inputs[0]]
    if any(node.outputs[1:]):
        dtype = "bool" if node.opset >= 10 else dtype_of(inputs[0])
        results.append(const(np.ones(shape_of(inputs[0]), dtype)))
    return results


@register_onnx_converter("Pow")
def convert_pow(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Pow; the exponent may have another type than the base, whose type the result has."""
    base, exponent = inputs
    value = constant(exponent)
    if value is not None and value.size == 1 and len(shape_of(exponent)) <= len(shape_of(base)):
        if value.item() == 2:
            return relax.op.multiply(base, base)
        if value.item() == 0.5 and dtype_of(base).startswith("float"):
            return relax.op.sqrt(base)
    result_dtype = dtype_of(base)
    # TVM raises floats only; float64 is exact for what int32 holds.
    dtype = result_dtype if result_dtype.startswith("float") else "float64"
    if dtype != result_dtype:
        base = bb.emit(relax.op.astype(base, dtype))
    if dtype_of(exponent) != dtype:
        if value is not None:
            exponent = const(value.astype(dtype))
        else:
            exponent = bb.emit(relax.op.astype(exponent, dtype))
    power = relax.op.power(base, exponent)
    return power if dtype == result_dtype else relax.op.astype(bb.emit(power), result_dtype)


@register_onnx_converter("IsInf")
def convert_is_inf(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert IsInf; either sign can be left out of the question."""
    data = inputs[0]
    signs = (attrs.get("detect_negative", 1), attrs.get("detect_positive", 1))
    if all(signs):
        return relax.op.isinf(data)
    if not any(signs):
        return const(np.zeros(shape_of(data), "bool"))
    return relax.op.equal(data, scalar(float("-inf") if signs[0] else float("inf"), data))
