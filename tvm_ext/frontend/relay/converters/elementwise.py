"""Elementwise operators; values that are known at import are computed there, in numpy.

So shapes, loop counters and scales never reach Relax.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from tvm import relax

from tvm_ext.frontend.onnx_converters import elementwise as onnx
from tvm_ext.frontend.onnx_converters.values import const, constant, dtype_of, scalar
from tvm_ext.frontend.relay.registry import OpCall, converts

Compute = Callable[..., np.ndarray]

MAX_GROWTH_BYTES = 1 << 20
"""A value computed at import may not be this much larger than what it's computed from."""


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b; of whole numbers rounded towards zero."""
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    floor, rest = a // b, a % b
    return np.asarray(floor + ((rest != 0) & ((a < 0) != (b < 0))))


def round_half_away(x: np.ndarray) -> np.ndarray:
    """The nearest whole number; of two the one further from zero, as C's round has it."""
    whole = np.trunc(x)
    return np.asarray(whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0))


def emit_round(call: OpCall, x: relax.Expr) -> relax.Expr:
    """`round_half_away` at run time (``relax.round`` goes to the even one)."""
    whole = call.emit(relax.op.trunc, x)
    rest = call.emit(relax.op.abs, call.emit(relax.op.subtract, x, whole))
    up = call.emit(relax.op.greater_equal, rest, scalar(0.5, x))
    step = call.emit(relax.op.where, up, call.emit(relax.op.sign, x), scalar(0, x))
    return call.emit(relax.op.add, whole, step)


_UNARY: dict[str, tuple[Callable[..., relax.Expr], Compute | None]] = {
    "abs": (relax.op.abs, np.abs),
    "acos": (relax.op.acos, np.arccos),
    "acosh": (relax.op.acosh, np.arccosh),
    "asin": (relax.op.asin, np.arcsin),
    "asinh": (relax.op.asinh, np.arcsinh),
    "atan": (relax.op.atan, np.arctan),
    "atanh": (relax.op.atanh, np.arctanh),
    "bitwise_not": (relax.op.bitwise_not, np.bitwise_not),
    "ceil": (relax.op.ceil, np.ceil),
    "cos": (relax.op.cos, np.cos),
    "cosh": (relax.op.cosh, np.cosh),
    "erf": (relax.op.erf, None),
    "exp": (relax.op.exp, np.exp),
    "fast_erf": (relax.op.erf, None),
    "fast_exp": (relax.op.exp, np.exp),
    "fast_tanh": (relax.op.tanh, np.tanh),
    "floor": (relax.op.floor, np.floor),
    "isfinite": (relax.op.isfinite, np.isfinite),
    "isinf": (relax.op.isinf, np.isinf),
    "isnan": (relax.op.isnan, np.isnan),
    "log": (relax.op.log, np.log),
    "logical_not": (relax.op.logical_not, np.logical_not),
    "negative": (relax.op.negative, np.negative),
    "rsqrt": (relax.op.rsqrt, lambda x: 1 / np.sqrt(x)),
    "sigmoid": (relax.op.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "sign": (relax.op.sign, np.sign),
    "sin": (relax.op.sin, np.sin),
    "sinh": (relax.op.sinh, np.sinh),
    "sqrt": (relax.op.sqrt, np.sqrt),
    "tan": (relax.op.tan, np.tan),
    "tanh": (relax.op.tanh, np.tanh),
    "trunc": (relax.op.trunc, np.trunc),
}
_BINARY: dict[str, tuple[Callable[..., relax.Expr], Compute]] = {
    "add": (relax.op.add, np.add),
    "bitwise_and": (relax.op.bitwise_and, np.bitwise_and),
    "bitwise_or": (relax.op.bitwise_or, np.bitwise_or),
    "bitwise_xor": (relax.op.bitwise_xor, np.bitwise_xor),
    "divide": (relax.op.divide, _quotient),
    "equal": (relax.op.equal, np.equal),
    "floor_divide": (relax.op.floor_divide, np.floor_divide),
    "floor_mod": (relax.op.floor_mod, np.mod),
    "greater": (relax.op.greater, np.greater),
    "greater_equal": (relax.op.greater_equal, np.greater_equal),
    "left_shift": (relax.op.left_shift, np.left_shift),
    "less": (relax.op.less, np.less),
    "less_equal": (relax.op.less_equal, np.less_equal),
    "logical_and": (relax.op.logical_and, np.logical_and),
    "logical_or": (relax.op.logical_or, np.logical_or),
    "logical_xor": (relax.op.logical_xor, np.logical_xor),
    "maximum": (relax.op.maximum, np.maximum),
    "minimum": (relax.op.minimum, np.minimum),
    "mod": (relax.op.mod, np.fmod),
    "multiply": (relax.op.multiply, np.multiply),
    "not_equal": (relax.op.not_equal, np.not_equal),
    "right_shift": (relax.op.right_shift, np.right_shift),
    "subtract": (relax.op.subtract, np.subtract),
    "trunc_mod": (relax.op.mod, np.fmod),
}
RELAX_NAMES = frozenset(
    f"relax.{name}"
    for name, (operator, _) in {**_UNARY, **_BINARY}.items()
    if operator.__name__ == name
)
"""Relax's names of the operators here that have Relay's."""


@converts(*_UNARY)
def convert_unary(call: OpCall) -> relax.Expr:
    """Convert an operator of one tensor to Relax's of the same meaning."""
    operator, compute = _UNARY[call.name]
    found = None if compute is None else _computed(call, compute, 1)
    return operator(call.tensor(0)) if found is None else found


@converts(*_BINARY)
def convert_binary(call: OpCall) -> relax.Expr:
    """Convert an operator of two tensors that broadcast."""
    operator, compute = _BINARY[call.name]
    found = _computed(call, compute, 2)
    return operator(call.tensor(0), call.tensor(1)) if found is None else found


@converts("trunc_divide")
def convert_trunc_divide(call: OpCall) -> relax.Expr:
    """Convert a quotient rounded towards zero."""
    found = _computed(call, lambda a, b: np.trunc(_quotient(a, b)), 2)
    if found is not None:
        return found
    quotient = call.emit(relax.op.divide, call.tensor(0), call.tensor(1))
    return quotient if "int" in dtype_of(quotient) else relax.op.trunc(quotient)


@converts("where")
def convert_where(call: OpCall) -> relax.Expr:
    """Convert a choice by elements; all three tensors broadcast."""
    found = _computed(call, np.where, 3)
    if found is not None:
        return found
    condition = call.tensor(0)
    if dtype_of(condition) != "bool":
        condition = call.emit(relax.op.not_equal, condition, scalar(0, condition))
    return relax.op.where(condition, call.tensor(1), call.tensor(2))


@converts("round")
def convert_round(call: OpCall) -> relax.Expr:
    """Convert rounding, halves away from zero."""
    found = _computed(call, round_half_away, 1)
    return emit_round(call, call.tensor(0)) if found is None else found


@converts("log2", "log10")
def convert_logarithm(call: OpCall) -> relax.Expr:
    """Convert a logarithm of another base through the natural one."""
    base = {"log2": 2, "log10": 10}[call.name]
    natural = call.emit(relax.op.log, call.tensor(0))
    return relax.op.multiply(natural, scalar(1 / np.log(base), natural))


@converts("power")
def convert_power(call: OpCall) -> relax.Expr:
    """Convert a power; of whole numbers through float64, exact up to 2**53."""
    found = _computed(call, np.power, 2)
    return call.onnx(onnx.convert_pow, [call.tensor(0), call.tensor(1)]) if found is None else found


@converts("clip")
def convert_clip(call: OpCall) -> relax.Expr:
    """Convert the restriction to an interval."""
    data = call.tensor(0)
    dtype = np.dtype(dtype_of(data))
    low: float = float(call.required("a_min"))
    high: float = float(call.required("a_max"))
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # A bound outside of the type bounds nothing; as a double the largest int64 is one more.
        low = limits.min if low <= limits.min else int(np.ceil(low))
        high = limits.max if high >= limits.max else int(np.floor(high))
    found = _computed(call, lambda x: np.asarray(np.clip(x, low, high)), 1)
    if found is not None:
        return found
    bounds = [const(np.asarray(bound, dtype)) for bound in (low, high)]
    return call.onnx(onnx.convert_clip, [data, *bounds])


@converts("cast")
def convert_cast(call: OpCall) -> relax.Expr:
    """Convert to another dtype."""
    return cast_to(call, call.tensor(0), str(call.required("dtype")))


@converts("cast_like")
def convert_cast_like(call: OpCall) -> relax.Expr:
    """Convert to the dtype of the second tensor."""
    return cast_to(call, call.tensor(0), dtype_of(call.tensor(1)))


def cast_to(call: OpCall, data: relax.Expr, dtype: str) -> relax.Expr:
    """A tensor in another dtype, computed at import where it is known."""
    value = constant(data)
    if value is None or "bfloat" in dtype + dtype_of(data):
        return call.cast(data, dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        return const(value.astype(dtype))


def _computed(call: OpCall, compute: Compute, count: int) -> relax.Expr | None:
    """The value of an operator whose arguments are all known, unless it's much larger."""
    values = [constant(call.tensor(i)) for i in range(count)]
    known = [v for v in values if v is not None]
    if len(known) < count:
        return None
    shape = np.broadcast_shapes(*(v.shape for v in known))
    if prod(shape) * known[-1].itemsize > sum(v.nbytes for v in known) + MAX_GROWTH_BYTES:
        return None
    # Division by a known zero is left to the run, which has its own rules.
    if any(not v.all() for v in known[1:]) and known[0].dtype.kind in "iu" and "mod" in call.name:
        return None
    with np.errstate(all="ignore"):
        result = np.asarray(compute(*known))
        if result.dtype != bool:
            result = result.astype(known[-1].dtype, copy=False)
    return const(result)
