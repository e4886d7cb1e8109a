"""Arithmetic, comparisons and activations, in the dtypes to which torch promotes their operands."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch._ops import OpOverload
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import const, constant
from tvm_ext.frontend.torch_registry import Call, Converter, converts

aten = torch.ops.aten
# From here on log(1 + exp(x)) and x are the same float32.
_SOFTPLUS_IS_LINEAR = 17

_UNARY = {
    aten.acos.default: relax.op.acos,
    aten.acosh.default: relax.op.acosh,
    aten.asin.default: relax.op.asin,
    aten.asinh.default: relax.op.asinh,
    aten.atan.default: relax.op.atan,
    aten.atanh.default: relax.op.atanh,
    aten.cos.default: relax.op.cos,
    aten.cosh.default: relax.op.cosh,
    aten.erf.default: relax.op.erf,
    aten.exp.default: relax.op.exp,
    aten.log.default: relax.op.log,
    aten.rsqrt.default: relax.op.rsqrt,
    aten.sigmoid.default: relax.op.sigmoid,
    aten.sin.default: relax.op.sin,
    aten.sinh.default: relax.op.sinh,
    aten.sqrt.default: relax.op.sqrt,
    aten.tan.default: relax.op.tan,
    aten.tanh.default: relax.op.tanh,
}
_BINARY = {
    aten.remainder: relax.op.floor_mod,
    aten.fmod: relax.op.mod,
    aten.maximum: relax.op.maximum,
    aten.minimum: relax.op.minimum,
}
_COMPARISONS = {
    aten.eq: relax.op.equal,
    aten.ne: relax.op.not_equal,
    aten.lt: relax.op.less,
    aten.le: relax.op.less_equal,
    aten.gt: relax.op.greater,
    aten.ge: relax.op.greater_equal,
}


def _overloads(packet: torch._ops.OpOverloadPacket) -> list[OpOverload]:
    """The overloads of a binary operator for tensors and numbers."""
    names = ("default", "Tensor", "Scalar")
    return [getattr(packet, name) for name in packet.overloads() if name in names]


def _unary(operator: Callable[..., relax.Expr]) -> Converter:
    """Integers become floats first."""
    return lambda call: operator(call.cast("self"))


def _binary(operator: Callable[..., relax.Expr]) -> Converter:
    return lambda call: operator(call.cast("self"), call.cast("other"))


def _comparison(operator: Callable[..., relax.Expr]) -> Converter:
    def convert(call: Call) -> relax.Expr:
        dtype = call.promoted("self", "other")
        return operator(call.cast("self", dtype), call.cast("other", dtype))

    return convert


for _operator, _function in _UNARY.items():
    converts(_operator)(_unary(_function))
for _packet, _function in _BINARY.items():
    converts(*_overloads(_packet))(_binary(_function))
for _packet, _function in _COMPARISONS.items():
    converts(*_overloads(_packet))(_comparison(_function))


@converts(aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar)
def convert_sum(call: Call) -> relax.Expr:
    """Convert ``self + alpha * other`` and ``self - alpha * other``; of booleans, "or"."""
    if call.dtype == "bool":
        return relax.op.logical_or(call["self"], call.cast("other"))
    minus = call.name.startswith("aten::sub")
    other = call.cast("other")
    if call["alpha"] != 1:
        other = call.emit(relax.op.multiply, other, const(call["alpha"], call.dtype))
    return (relax.op.subtract if minus else relax.op.add)(call.cast("self"), other)


@converts(aten.mul.Tensor, aten.mul.Scalar)
def convert_mul(call: Call) -> relax.Expr:
    """Convert a product; of booleans, "and"."""
    operator = relax.op.logical_and if call.dtype == "bool" else relax.op.multiply
    return operator(call.cast("self"), call.cast("other"))


@converts(aten.div.Tensor, aten.div.Scalar, aten.div.Tensor_mode, aten.div.Scalar_mode)
def convert_div(call: Call) -> relax.Expr:
    """Convert a division: true, or rounded down or towards zero."""
    a, b = call.cast("self"), call.cast("other")
    mode = call.args.get("rounding_mode")
    integers = "int" in call.dtype
    if mode == "floor" and integers:
        return relax.op.floor_divide(a, b)
    quotient = relax.op.divide(a, b)
    # Relax divides integers towards zero.
    if mode is None or integers:
        return quotient
    return (relax.op.floor if mode == "floor" else relax.op.trunc)(call.bb.emit(quotient))


@converts(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar)
def convert_pow(call: Call) -> relax.Expr:
    """Convert a power; small whole exponents become products, one half a root."""
    exponent = call["exponent"]
    base = call.cast("self")
    if exponent == 0.5:
        return relax.op.sqrt(base)
    if exponent == -1:
        return relax.op.divide(const(1, call.dtype), base)
    if exponent in (1, 2, 3, 4):
        square = base if exponent == 1 else call.emit(relax.op.multiply, base, base)
        if exponent == 4:
            return relax.op.multiply(square, square)
        return relax.op.multiply(square, base) if exponent == 3 else square
    return relax.op.power(base, call.cast("exponent"))


@converts(aten.where.self)
def convert_where(call: Call) -> relax.Expr:
    """Convert a choice between two tensors of any two dtypes."""
    condition = constant(call["condition"])
    if condition is not None and condition.size and condition.all() == condition.any():
        return call.broadcast(call.cast("self" if condition.all() else "other"))
    return relax.op.where(call["condition"], call.cast("self"), call.cast("other"))


@converts(aten.elu.default)
def convert_elu(call: Call) -> relax.Expr:
    """Convert ``scale * (x if x > 0 else alpha * (exp(input_scale * x) - 1))``: ELU and SELU."""
    x = call["self"]

    def times(value: relax.Expr, factor: float) -> relax.Expr:
        return value if factor == 1 else call.emit(relax.op.multiply, value, _number(call, factor))

    # exp of what's positive isn't needed, and might be infinite.
    low = call.emit(relax.op.minimum, times(x, call["input_scale"]), _number(call, 0))
    low = call.emit(relax.op.subtract, call.emit(relax.op.exp, low), _number(call, 1))
    low = times(low, call["alpha"] * call["scale"])
    positive = call.emit(relax.op.greater, x, _number(call, 0))
    return relax.op.where(positive, times(x, call["scale"]), low)


@converts(aten.exp2.default)
def convert_exp2(call: Call) -> relax.Expr:
    """Convert ``2 ** x``."""
    exponent = call.emit(relax.op.multiply, call.cast("self"), _number(call, math.log(2)))
    return relax.op.exp(exponent)


@converts(aten.erfc.default)
def convert_erfc(call: Call) -> relax.Expr:
    """Convert ``1 - erf(x)``."""
    return relax.op.subtract(_number(call, 1), call.emit(relax.op.erf, call.cast("self")))


@converts(aten.silu.default)
def convert_silu(call: Call) -> relax.Expr:
    """Convert ``x * sigmoid(x)``."""
    return relax.op.nn.silu(call["self"])


@converts(aten.hardsigmoid.default)
def convert_hardsigmoid(call: Call) -> relax.Expr:
    """Convert ``clip(x / 6 + 1 / 2, 0, 1)``."""
    return _hardsigmoid(call)


@converts(aten.hardswish.default)
def convert_hardswish(call: Call) -> relax.Expr:
    """Convert ``x * hardsigmoid(x)``."""
    return relax.op.multiply(call["self"], call.bb.emit(_hardsigmoid(call)))


@converts(aten.softplus.default)
def convert_softplus(call: Call) -> relax.Expr:
    """Convert ``log(1 + exp(beta * x)) / beta``, or `x` where ``beta * x`` is over a threshold."""
    x, beta, threshold = call["self"], call["beta"], call["threshold"]
    scaled = x if beta == 1 else call.emit(relax.op.multiply, x, _number(call, beta))
    soft = relax.op.nn.softplus(scaled)
    if beta != 1:
        soft = relax.op.divide(call.bb.emit(soft), _number(call, beta))
    if threshold >= _SOFTPLUS_IS_LINEAR:
        return soft
    beyond = call.emit(relax.op.greater, scaled, _number(call, threshold))
    return relax.op.where(beyond, x, call.bb.emit(soft))


@converts(aten.mish.default)
def convert_mish(call: Call) -> relax.Expr:
    """Convert ``x * tanh(softplus(x))``."""
    soft = call.emit(relax.op.nn.softplus, call["self"])
    return relax.op.multiply(call["self"], call.emit(relax.op.tanh, soft))


def _hardsigmoid(call: Call) -> relax.Expr:
    x = call.emit(relax.op.multiply, call["self"], _number(call, 1 / 6))
    return relax.op.clip(call.emit(relax.op.add, x, _number(call, 0.5)), 0, 1)


def _number(call: Call, value: float) -> relax.Expr:
    return const(value, call.dtype)
