"""QNN: integers with scales and zero points.

Products are sums of exact int32 on values whose zero point has been subtracted, so that padding
with zeros is right. Scales and zero points must be known at import.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.convolution import convolve, convolve_transposed
from tvm_ext.frontend.relay.converters.elementwise import emit_round
from tvm_ext.frontend.relay.converters.fixed_point import (
    Scale,
    centre,
    fixed_point,
    requantized,
    saturated,
    scale_of,
)
from tvm_ext.frontend.relay.converters.joining import joined
from tvm_ext.frontend.relay.converters.linear import multiply, unpacked
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("qnn.quantize")
def convert_quantize(call: OpCall) -> relax.Expr:
    """Convert ``round(x / scale) + zero_point``, halves away from zero, saturated."""
    data = call.tensor(0)
    scale = scale_of(call, 1, 2).along(int(call.attr("axis", -1)), len(shape_of(data)))
    return quantized(call, data, scale, call.dtype("out_dtype", "int8"))


@converts("qnn.dequantize")
def convert_dequantize(call: OpCall) -> relax.Expr:
    """Convert ``(q - zero_point) * scale``."""
    data = call.tensor(0)
    scale = scale_of(call, 1, 2).along(int(call.attr("axis", -1)), len(shape_of(data)))
    return real(call, data, scale, call.dtype("out_dtype", "float32"))


@converts("qnn.requantize")
def convert_requantize(call: OpCall) -> relax.Expr:
    """Convert to another scale and zero point, in the integers that Relay computes by default."""
    rounding = call.dtype("rounding", "UPWARD")
    return requantized(
        call,
        call.tensor(0),
        scale_of(call, 1, 2),
        scale_of(call, 3, 4),
        call.dtype("out_dtype", "int8"),
        axis=int(call.attr("axis", -1)),
        rounding=rounding,
        compute_dtype=call.dtype("compute_dtype", "int64"),
    )


@converts("fixed_point_multiply")
def convert_fixed_point_multiply(call: OpCall) -> relax.Expr:
    """Convert ``x * multiplier * 2**(shift - 31)``, rounded half up, in int64."""
    multiplier, shift = int(call.required("multiplier")), int(call.required("shift"))
    data = call.tensor(0)
    if dtype_of(data) != "int32":
        raise ModelError(f"the data is {dtype_of(data)}; it must be int32")
    return fixed_point(call, data, np.asarray(multiplier), np.asarray(shift), "UPWARD")


@converts("fixed_point_multiply_per_axis")
def convert_fixed_point_multiply_per_axis(call: OpCall) -> relax.Expr:
    """Convert `fixed_point_multiply` with numbers for each element along one axis."""
    data = call.tensor(0)
    axes = [int(axis) for axis in call.required("axes")]
    if dtype_of(data) != "int32" or len(axes) != 1:
        raise ModelError(f"the data is {dtype_of(data)} and axes {axes}; int32 and one axis needed")
    shape = [-1 if i == axes[0] else 1 for i in range(len(shape_of(data)))]
    multiplier, left, right = (
        call.known(i, what).reshape(shape)
        for i, what in enumerate(("multiplier", "left shift", "right shift"), start=1)
    )
    shift = left if call.attr("is_lshift_required", False) else np.zeros_like(left)
    shift = shift - right if call.attr("is_rshift_required", False) else shift
    return fixed_point(call, data, multiplier, shift, "UPWARD")


@converts("qnn.conv2d", "qnn.conv2d_transpose")
def convert_conv(call: OpCall) -> relax.Expr:
    """Convert a convolution to int32, whose scale is the product of both."""
    data = centre(call, call.tensor(0), call.known(2, "input_zero_point"))
    weight = call.tensor(1)
    zero = call.known(3, "kernel_zero_point")
    if zero.size > 1:
        layout = str(call.attr("kernel_layout", "OIHW"))
        zero = zero.reshape([-1 if letter == "O" else 1 for letter in layout])
    weight = centre(call, weight, zero.reshape(()) if zero.size == 1 else zero)
    convert = convolve_transposed if call.name.endswith("transpose") else convolve
    return _wanted(call, convert(call, data, weight))


@converts("qnn.dense", "qnn.contrib_dense_pack")
def convert_dense(call: OpCall) -> relax.Expr:
    """Convert ``data @ weight.T`` to int32; the weights may have a zero point a unit."""
    data = centre(call, call.tensor(0), call.known(2, "input_zero_point").reshape(()))
    weight, zero = call.tensor(1), call.known(3, "kernel_zero_point")
    if call.name.endswith("dense_pack"):
        weight = unpacked(call, weight)
    weight = centre(call, weight, zero.reshape(-1, 1) if zero.size > 1 else zero)
    return _wanted(call, multiply(call, data, weight, False, True))


@converts("qnn.batch_matmul")
def convert_batch_matmul(call: OpCall) -> relax.Expr:
    """Convert products of (B, M, K) and (B, N, K), the second transposed, to int32."""
    a = centre(call, call.tensor(0), call.known(2, "x_zero_point"))
    b = centre(call, call.tensor(1), call.known(3, "y_zero_point"))
    return _wanted(call, multiply(call, a, b, False, True))


@converts("qnn.add", "qnn.subtract")
def convert_sum(call: OpCall) -> relax.Expr:
    """Convert a sum or difference: both sides in the output's scale, in int32."""
    target, dtype = scale_of(call, 6, 7), dtype_of(call.tensor(0))
    left = rescaled(call, 0, scale_of(call, 2, 3), target)
    right = rescaled(call, 1, scale_of(call, 4, 5), target)
    zero = target.zero_point.reshape(())
    if call.name == "qnn.add":
        total = call.emit(relax.op.add, left, right)
        total = call.emit(relax.op.subtract, total, const(zero)) if zero else total
    else:
        total = call.emit(relax.op.subtract, left, right)
        total = call.emit(relax.op.add, total, const(zero)) if zero else total
    return saturated(call, total, dtype)


@converts("qnn.mul")
def convert_product(call: OpCall) -> relax.Expr:
    """Convert a product: that of the centred values has the product of both scales."""
    left, right, target = (scale_of(call, i, i + 1) for i in (2, 4, 6))
    a = centre(call, call.tensor(0), _single(left.zero_point))
    b = centre(call, call.tensor(1), _single(right.zero_point))
    product = call.emit(relax.op.multiply, a, b)
    source = Scale(_single(left.scale) * _single(right.scale), np.zeros((), "int32"))
    return requantized(call, product, source, target, dtype_of(call.tensor(0)))


@converts("qnn.concatenate")
def convert_concatenate(call: OpCall) -> relax.Expr:
    """Convert tensors of several scales to one of a single scale."""
    scales, zeros = call.tensors(1), call.tensors(2)
    target = scale_of(call, 3, 4)
    parts = []
    for i, data in enumerate(call.tensors(0)):
        own = OpCall(call.bb, call.name, (scales[i], zeros[i]), {})
        source = scale_of(own, 0, 1)
        same = source == target
        parts.append(data if same else requantized(call, data, source, target, dtype_of(data)))
    return joined(call, parts, int(call.attr("axis", 0)))


def quantized(call: OpCall, data: relax.Expr, scale: Scale, dtype: str) -> relax.Expr:
    """Return ``round(data / scale) + zero_point`` in a dtype, saturated."""
    divided = call.emit(relax.op.divide, data, const(scale.scale, dtype_of(data)))
    whole = emit_round(call, divided)
    limits = np.iinfo(dtype)
    # Numbers beyond int32 must not wrap round, so they are cut off before.
    zero = const(scale.zero_point.astype("float32"), dtype_of(data))
    shifted = call.emit(relax.op.add, whole, zero)
    clipped = call.emit(relax.op.clip, shifted, float(limits.min), float(limits.max))
    return call.emit(relax.op.astype, clipped, dtype)


def real(call: OpCall, data: relax.Expr, scale: Scale, dtype: str) -> relax.Expr:
    """Return the numbers that integers stand for."""
    centred = call.emit(relax.op.astype, centre(call, data, scale.zero_point), dtype)
    return call.emit(relax.op.multiply, centred, const(scale.scale, dtype))


def rescaled(call: OpCall, index: int, source: Scale, target: Scale) -> relax.Expr:
    """An argument as int32 of the target's scale."""
    data = call.tensor(index)
    if source == target:
        return call.cast(data, "int32")
    axis = int(call.attr("lhs_axis" if index == 0 else "rhs_axis", -1))
    return requantized(call, data, source, target, "int32", axis=axis)


def _single(values: np.ndarray) -> np.ndarray:
    if values.size != 1:
        raise ModelError(f"{values.size} scales or zero points; there must be one")
    return values.reshape(())


def _wanted(call: OpCall, result: relax.Expr) -> relax.Expr:
    return call.cast(result, call.dtype("out_dtype", "int32"))
