"""Element-wise operators that are no activations: Clip, Pow of mixed types, IsInf, Dropout."""

from __future__ import annotations

import numpy as np
import onnx
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
    adds_no_axes = len(shape_of(exponent)) <= len(shape_of(base))
    if value is not None and value.size == 1 and value.item() == 2 and adds_no_axes:
        return relax.op.multiply(base, base)
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


@register_onnx_converter("Cast")
def convert_cast(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Cast to one operator; its kernel knows what becomes of numbers out of range."""
    return _cast(inputs[0], onnx.TensorProto.DataType.Name(attrs["to"]).lower())


@register_onnx_converter("CastLike")
def convert_cast_like(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert CastLike: of the second input only the type matters."""
    return _cast(inputs[0], dtype_of(inputs[1]))


def _cast(data: relax.Expr, dtype: str) -> relax.Expr:
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    value = constant(data)
    if value is None or dtype == "bfloat16":
        return relax.op.astype(data, dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        return const(value.astype(dtype))
