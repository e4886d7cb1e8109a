"""Integer operators: QLinearConv, QLinearMatMul, ConvInteger and MatMulInteger.

All compute exactly in int32 on values whose zero point has been subtracted, so that padding with
zeros is right; the QLinear ones then rescale in float32 as ONNX Runtime does.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.frontend.onnx_converters.convolution import convolve, with_bias
from tvm_ext.frontend.onnx_converters.values import (
    const,
    constant,
    dtype_of,
    optional,
    required_constant,
    shape_of,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


@register_onnx_converter("ConvInteger")
def convert_conv_integer(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert ConvInteger: an int32 convolution of inputs minus zero points."""
    data = centred(bb, inputs[0], optional(inputs, 2))
    weight = centred(bb, inputs[1], _along_first(optional(inputs, 3), inputs[1]))
    return convolve(data, weight, attrs)


@register_onnx_converter("MatMulInteger")
def convert_matmul_integer(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert MatMulInteger: an int32 product of inputs minus zero points."""
    a = centred(bb, inputs[0], _along_rows(optional(inputs, 2)))
    b = centred(bb, inputs[1], optional(inputs, 3))
    return relax.op.matmul(a, b)


@register_onnx_converter("QLinearConv")
def convert_qlinear_conv(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert QLinearConv with constant scales; weights may have one scale a channel."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = inputs[:8]
    data = centred(bb, x, x_zero)
    weight = centred(bb, w, _along_first(w_zero, w))
    out = bb.emit(with_bias(bb, convolve(data, weight, attrs), optional(inputs, 8)))
    scale = (
        required_constant(x_scale, "x_scale")
        * required_constant(w_scale, "w_scale")
        / required_constant(y_scale, "y_scale")
    )
    if scale.size > 1:
        scale = scale.reshape(-1, *[1] * (len(shape_of(x)) - 2))
    return requantized(bb, out, scale, y_zero)


@register_onnx_converter("QLinearMatMul")
def convert_qlinear_matmul(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert QLinearMatMul with constant scales, per tensor, per row of A or per column of B."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs[:8]
    out = bb.emit(relax.op.matmul(centred(bb, a, _along_rows(a_zero)), centred(bb, b, b_zero)))
    a_factor = required_constant(_along_rows(a_scale), "a_scale")
    scale = a_factor * required_constant(b_scale, "b_scale") / required_constant(y_scale, "y_scale")
    return requantized(bb, out, scale, y_zero)


def centred(bb: relax.BlockBuilder, quantized: relax.Expr, zero: relax.Expr | None) -> relax.Expr:
    """Return ``quantized - zero`` in int32, computed at import if both are known."""
    value = constant(quantized)
    zero_value = np.zeros((), "int32") if zero is None else constant(zero)
    if value is not None and zero_value is not None:
        return const(value.astype("int32") - zero_value.astype("int32"))
    wide = bb.emit(relax.op.astype(quantized, "int32"))
    if zero_value is None:
        return bb.emit(relax.op.subtract(wide, bb.emit(relax.op.astype(zero, "int32"))))
    if not zero_value.any():
        return wide
    return bb.emit(relax.op.subtract(wide, const(zero_value.astype("int32"))))


def requantized(
    bb: relax.BlockBuilder, accumulated: relax.Expr, scale: np.ndarray, zero: relax.Expr
) -> relax.Expr:
    """Return ``clip(round(accumulated * scale) + zero)`` in the dtype of `zero`."""
    dtype = dtype_of(zero)
    limits = np.iinfo(dtype)
    real = bb.emit(relax.op.astype(accumulated, "float32"))
    real = bb.emit(relax.op.multiply(real, const(scale.reshape(scale.shape or ()), "float32")))
    shifted = bb.emit(
        relax.op.add(
            bb.emit(relax.op.round(real)),
            const(required_constant(zero, "y_zero_point").astype("float32")),
        )
    )
    return relax.op.astype(
        bb.emit(relax.op.clip(shifted, float(limits.min), float(limits.max))), dtype
    )


def _along_first(zero: relax.Expr | None, weight: relax.Expr) -> relax.Expr | None:
    """Return per-output-channel zero points as (O, 1, ...)."""
    if zero is None or np.prod(shape_of(zero)) == 1:
        return zero
    value = required_constant(zero, "w_zero_point")
    return const(value.reshape(-1, *[1] * (len(shape_of(weight)) - 1)))


def _along_rows(vector: relax.Expr | None) -> relax.Expr | None:
    """Return a value a row as a column, (M,) -> (M, 1)."""
    if vector is None or len(shape_of(vector)) != 1 or shape_of(vector) == (1,):
        return vector
    value = constant(vector)
    return relax.op.expand_dims(vector, -1) if value is None else const(value[:, None])
