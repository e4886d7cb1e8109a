"""QNN's functions of one tensor, in the integers or real numbers in which Relay computes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.elementwise import emit_round
from tvm_ext.frontend.relay.converters.fixed_point import (
    Scale,
    centre,
    fixed_point,
    multiplier_and_shift,
    requantized,
    saturated,
    scale_of,
)
from tvm_ext.frontend.relay.converters.pooling import pooled
from tvm_ext.frontend.relay.converters.quantization import quantized, real, rescaled
from tvm_ext.frontend.relay.registry import OpCall, converts


def _hardswish(x: relax.Expr) -> relax.Expr:
    """``x * min(max(x + 3, 0), 6) / 6``."""
    slope = relax.op.clip(relax.op.add(x, relax.const(3.0, "float32")), 0.0, 6.0)
    return relax.op.divide(relax.op.multiply(x, slope), relax.const(6.0, "float32"))


_UNARY: dict[str, Callable[[relax.Expr], relax.Expr]] = {
    "qnn.erf": relax.op.erf,
    "qnn.exp": relax.op.exp,
    "qnn.hardswish": _hardswish,
    "qnn.log": relax.op.log,
    "qnn.rsqrt": relax.op.rsqrt,
    "qnn.sigmoid": relax.op.sigmoid,
    "qnn.sqrt": relax.op.sqrt,
    "qnn.tanh": relax.op.tanh,
}
# What simulated operators call the dtypes.
_SIMULATED = {0: "", 1: "int8", 2: "uint8", 3: "int32"}


@converts(*_UNARY)
def convert_unary(call: OpCall) -> relax.Expr:
    """Convert a function of the real numbers that the integers stand for."""
    data = call.tensor(0)
    source, target = (scale_of(call, i, i + 1).along(0, 1) for i in (1, 3))
    result = call.emit(_UNARY[call.name], real(call, data, source, "float32"))
    return quantized(call, result, target, dtype_of(data))


@converts("qnn.leaky_relu")
def convert_leaky_relu(call: OpCall) -> relax.Expr:
    """Convert to the output's scale, then multiply what is negative by a fixed-point number."""
    data = call.tensor(0)
    source, target = scale_of(call, 1, 2), scale_of(call, 3, 4)
    alpha = float(call.attr("alpha", 0.25))
    moved = rescaled(call, 0, source, target)
    scaled = fixed_point(call, moved, *multiplier_and_shift(np.asarray(alpha)), "UPWARD")
    rest = fixed_point(
        call,
        const(target.zero_point.reshape(())),
        *multiplier_and_shift(np.asarray(1 - alpha)),
        "UPWARD",
    )
    below = call.emit(relax.op.add, scaled, rest)
    wide = call.emit(relax.op.astype, data, "int32")
    negative = call.emit(relax.op.less, wide, const(source.zero_point.reshape(())))
    return saturated(call, call.emit(relax.op.where, negative, below, moved), dtype_of(data))


@converts("qnn.avg_pool2d")
def convert_avg_pool2d(call: OpCall) -> relax.Expr:
    """Convert to averages of integers that have the output's scale, rounded towards zero."""
    dtype = dtype_of(call.tensor(0))
    moved = rescaled(call, 0, scale_of(call, 1, 2), scale_of(call, 3, 4))
    return saturated(call, call.bb.emit(pooled(call, moved)), dtype)


@converts("qnn.softmax")
def convert_softmax(call: OpCall) -> relax.Expr:
    """Convert to Relay's approximation in integers: powers of two with straight lines between.

    A scale above 1 is refused, as Relay does.
    """
    source, target = scale_of(call, 1, 2), scale_of(call, 3, 4)
    if source.scale.size != 1 or source.scale.item() > 1:
        raise ModelError(f"the scale is {source.scale}; it must be one number of at most 1")
    axis = int(call.attr("axis", -1)) % len(shape_of(call.tensor(0)))
    data = centre(call, call.tensor(0), source.zero_point.reshape(()))
    unit = int(np.floor(1 / source.scale.item() + 0.5))

    def number(value: int) -> relax.Expr:
        return const(np.asarray(value, "int32"))

    def shifted(x: relax.Expr, bits: int) -> relax.Expr:
        return call.emit(relax.op.right_shift, x, number(bits))

    largest = call.emit(relax.op.max, data, [axis], True)
    x = call.emit(relax.op.subtract, data, largest)
    # x * log2(e), which is nearly 1 + 1/2 - 1/16.
    x = call.emit(relax.op.subtract, call.emit(relax.op.add, x, shifted(x, 1)), shifted(x, 4))
    whole = call.emit(relax.op.clip, call.emit(relax.op.divide, x, number(-unit)), 0, 20)
    rest = call.emit(relax.op.add, x, call.emit(relax.op.multiply, whole, number(unit)))
    line = call.emit(relax.op.add, shifted(rest, 1), number(unit))
    most = call.emit(relax.op.max, whole, [axis], True)
    powers = call.emit(relax.op.left_shift, line, call.emit(relax.op.subtract, most, whole))
    total = call.emit(relax.op.sum, powers, [axis], True)
    share = call.emit(relax.op.divide, number(1 << 30), total)
    out = shifted(call.emit(relax.op.multiply, share, powers), 23)
    eighth = Scale(np.asarray(2.0**-7, "float32"), np.zeros((), "int32"))
    return requantized(call, out, eighth, target, "int8")


@converts("qnn.simulated_quantize")
def convert_simulated_quantize(call: OpCall) -> relax.Expr:
    """Convert to whole numbers, saturated, in the data's own dtype."""
    data, dtype, scale = _simulated(call)
    if not dtype:
        return data
    limits = np.iinfo(dtype)
    divided = call.emit(relax.op.divide, data, const(scale.scale, dtype_of(data)))
    whole = emit_round(call, divided)
    shifted = call.emit(relax.op.add, whole, const(scale.zero_point, dtype_of(data)))
    return relax.op.clip(shifted, float(limits.min), float(limits.max))


@converts("qnn.simulated_dequantize")
def convert_simulated_dequantize(call: OpCall) -> relax.Expr:
    """Convert whole numbers in a floating dtype to what they stand for."""
    data, dtype, scale = _simulated(call)
    if not dtype:
        return data
    centred = call.emit(relax.op.subtract, data, const(scale.zero_point, dtype_of(data)))
    return relax.op.multiply(centred, const(scale.scale, dtype_of(data)))


def _simulated(call: OpCall) -> tuple[relax.Expr, str, Scale]:
    """The data, the dtype that is simulated ("" for none), and its scale."""
    code = int(call.known(1, "dtype").item())
    if code not in _SIMULATED:
        raise ModelError(f"the dtype has the code {code}; it must be one of {_SIMULATED}")
    data = call.tensor(0)
    axis = int(call.attr("axis", -1))
    return data, _SIMULATED[code], scale_of(call, 2, 3).along(axis, len(shape_of(data)))
