"""Scalar functions beyond those of `scalar_math`: logarithm, power, rounding, activations.

The same rules hold: float32 forms that LLVM vectorises where one is worth it, numpy's answers at
NaN, infinity and -0.0. What stays one libm call for each lane says so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import tirx

from tvm_ext.schedules import scalar_math as sm

_SQRT_HALF_BITS = 0x3F3504F3
_MIN_NORMAL = 1.17549435e-38
# Cephes logf: (log(1 + f) - f + f^2/2) / f^3 for sqrt(1/2) - 1 <= f < sqrt(2) - 1.
_LOG_POLY = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194440e-4
# Above this exponent a chain of multiplications loses more than powf's call costs.
_MAX_CHAIN = 8


def _const(value: float, like: tirx.Expr) -> tirx.Expr:
    return tirx.const(value, sm.dtype_of(like))


def _is_float(x: tirx.Expr) -> bool:
    return sm.dtype_of(x).startswith(("float", "bfloat"))


def in_float32(function: Callable[..., tirx.Expr]) -> Callable[..., tirx.Expr]:
    """`function` computed in float32 where its arguments are of half precision."""

    def wrapped(*args: tirx.Expr) -> tirx.Expr:
        dtype = sm.dtype_of(args[0])
        if dtype not in ("float16", "bfloat16"):
            return function(*args)
        return function(*(x.astype("float32") for x in args)).astype(dtype)

    return wrapped


def log(x: tirx.Expr) -> tirx.Expr:
    """Natural logarithm (Cephes logf, 2 ulp); -inf at zero, NaN below it, subnormals exact."""
    if sm.dtype_of(x) != "float32":
        return tirx.log(x)
    tiny = x < _const(_MIN_NORMAL, x)
    normal = tirx.Select(tiny, x * _const(2.0**23, x), x)
    bits = tirx.reinterpret("int32", normal)
    exponent = (bits - tirx.const(_SQRT_HALF_BITS, "int32")) >> 23
    f = tirx.reinterpret("float32", bits - (exponent << 23)) - _const(1.0, x)
    n = exponent.astype("float32") - tirx.Select(tiny, _const(23.0, x), _const(0.0, x))
    square = f * f
    y = f * square * sm.horner(_LOG_POLY, f) + n * _const(_LN2_LOW, x)
    y = f + (y - _const(0.5, x) * square) + n * _const(_LN2_HIGH, x)
    y = tirx.Select(x < _const(float("inf"), x), y, x)  # infinity and NaN are their own logarithm
    y = tirx.Select(x < _const(0.0, x), _const(float("nan"), x), y)
    return tirx.Select(tirx.EQ(x, _const(0.0, x)), _const(float("-inf"), x), y)


def softplus(x: tirx.Expr) -> tirx.Expr:
    """log(1 + e**x), by the odd series of 2 atanh(t / (2 + t)) at t = e**-|x| <= 1."""
    t = sm.exp(-tirx.abs(x))
    if sm.dtype_of(x) == "float64":
        return sm.relu(x) + sm.libm("log1p", t)
    s = t / (_const(2.0, x) + t)
    log1p = _const(2.0, x) * s * sm.horner([1.0 / k for k in range(15, 0, -2)], s * s)
    return sm.relu(x) + log1p


def expm1(x: tirx.Expr) -> tirx.Expr:
    """e**x - 1, by its Taylor polynomial where the subtraction would cancel."""
    if sm.dtype_of(x) == "float64":
        return sm.libm("expm1", x)
    factorials = (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0)
    small = tirx.abs(x) < _const(0.35, x)
    return tirx.Select(small, x * sm.horner(factorials, x), sm.exp(x) - _const(1.0, x))


def elu(x: tirx.Expr, alpha: float) -> tirx.Expr:
    """x where positive, alpha (e**x - 1) where negative."""
    return tirx.Select(x < _const(0.0, x), _const(alpha, x) * expm1(x), x)


def celu(x: tirx.Expr, alpha: float) -> tirx.Expr:
    """x where positive, alpha (e**(x / alpha) - 1) where negative."""
    inner = expm1(x / _const(alpha, x))
    return tirx.Select(x < _const(0.0, x), _const(alpha, x) * inner, x)


def mish(x: tirx.Expr) -> tirx.Expr:
    """x tanh(log(1 + e**x)) = x n / (n + 2) with n = e**x (e**x + 2)."""
    e = sm.exp(sm.clip(x, float("-inf"), 20.0))  # past it the quotient is 1
    n = e * (e + _const(2.0, x))
    return x * (n / (n + _const(2.0, x)))


def hard_sigmoid(x: tirx.Expr, slope: float, offset: float) -> tirx.Expr:
    """slope x + offset limited to [0, 1]."""
    return sm.clip(_const(slope, x) * x + _const(offset, x), 0.0, 1.0)


def cast(x: tirx.Expr, dtype: str) -> tirx.Expr:
    """x in another type. Numbers out of an integer type's range are what numpy has on x86.

    That is the lowest number of int32 and int64; narrower types keep the low bits of an int32,
    uint32 those of an int64. LLVM leaves it open, and folds constants to anything.
    """
    if not _is_float(x) or not dtype.startswith(("int", "uint")):
        return x.astype(dtype)
    if sm.dtype_of(x) == "float16":
        x = x.astype("float32")
    if dtype != "uint64":
        return _whole(x, "int64" if dtype in ("int64", "uint32") else "int32").astype(dtype)
    half = _const(2.0**63, x)
    low = _whole(tirx.Select(x < half, x, x - half), "int64").astype("uint64")
    return tirx.Select(x < half, low, low ^ tirx.const(2**63, "uint64"))


def _whole(x: tirx.Expr, dtype: str) -> tirx.Expr:
    """x rounded towards zero, or the lowest number of `dtype` where that isn't possible."""
    bits = int(dtype.removeprefix("int")) - 1
    inside = tirx.all(x >= _const(-(2.0**bits), x), x < _const(2.0**bits, x))
    whole = tirx.Select(inside, x, _const(0.0, x)).astype(dtype)
    return tirx.Select(inside, whole, tirx.min_value(dtype))


def nearest(x: tirx.Expr) -> tirx.Expr:
    """x rounded to a whole number, halves to even (numpy.rint).

    TVM calls its own `nearbyint` for each lane of a vector; LLVM's is an instruction for all.
    """
    dtype = sm.dtype_of(x)
    if dtype not in ("float32", "float64"):
        return tirx.nearbyint(x)
    return tirx.call_llvm_pure_intrin(dtype, "llvm.nearbyint", x)


def negative(x: tirx.Expr) -> tirx.Expr:
    """-x; unsigned numbers wrap around (numpy.negative)."""
    return _const(0, x) - x if sm.dtype_of(x).startswith("uint") else -x


def sign(x: tirx.Expr) -> tirx.Expr:
    """-1, 0 or 1; NaN stays."""
    one, zero = _const(1, x), _const(0, x)
    if sm.dtype_of(x).startswith("uint"):
        return tirx.Select(x > zero, one, zero)
    at_zero = tirx.Select(tirx.EQ(x, zero), zero, x) if _is_float(x) else zero
    return tirx.Select(x > zero, one, tirx.Select(x < zero, _const(-1, x), at_zero))


def equal(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """Whether two values are equal; LLVM has no comparison of two booleans from TVM."""
    return tirx.Not(logical_xor(a, b)) if sm.dtype_of(a) == "bool" else tirx.EQ(a, b)


def not_equal(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """Whether two values differ; true if either is NaN, where `tirx.NE` compares as ordered."""
    if sm.dtype_of(a) == "bool":
        return logical_xor(a, b)
    differ = tirx.NE(a, b)
    return tirx.any(differ, tirx.isnan(a), tirx.isnan(b)) if _is_float(a) else differ


def logical_xor(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """Whether exactly one holds."""
    return tirx.all(tirx.any(a, b), tirx.Not(tirx.all(a, b)))


def is_infinite(x: tirx.Expr) -> tirx.Expr:
    return tirx.EQ(tirx.abs(x), _const(float("inf"), x))


def is_finite(x: tirx.Expr) -> tirx.Expr:
    return tirx.abs(x) < _const(float("inf"), x)


def left_shift(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """a << b; 0 where b is no position in the number (numpy)."""
    return tirx.Select(_is_position(b, sm.dtype_of(a)), a << b, _const(0, a))


def right_shift(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """a >> b; 0 or, of negative numbers, -1 where b is no position in the number (numpy)."""
    signed = sm.dtype_of(a).startswith("int")
    beyond = tirx.Select(a < _const(0, a), _const(-1, a), _const(0, a)) if signed else _const(0, a)
    return tirx.Select(_is_position(b, sm.dtype_of(a)), a >> b, beyond)


def _is_position(b: tirx.Expr, dtype: str) -> tirx.Expr:
    """Whether `b` is less than the bits of a type; LLVM gives anything for other shifts."""
    fits = b < _const(np.iinfo(dtype).bits, b)
    return tirx.all(fits, b >= _const(0, b)) if sm.dtype_of(b).startswith("int") else fits


def truncated_mod(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """C's remainder, with the sign of `a` (ONNX Mod with fmod=1); fmodf for floats."""
    if not _is_float(a):
        return tirx.truncmod(a, b)
    return in_float32(lambda x, y: tirx.call_pure_extern(
        sm.dtype_of(x), "fmodf" if sm.dtype_of(x) == "float32" else "fmod", x, y
    ))(a, b)  # fmt: skip


def floored_mod(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """Python's remainder, with the sign of `b` (numpy.mod)."""
    if not _is_float(a):
        return tirx.floormod(a, b)
    zero = _const(0.0, a)
    rest = truncated_mod(a, b)
    wrong_sign = tirx.any(
        tirx.all(rest < zero, b > zero),
        tirx.all(rest > zero, b < zero),
    )
    return tirx.Select(wrong_sign, rest + b, rest)


def floored_divide(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """Quotient rounded down."""
    return tirx.floor(a / b) if _is_float(a) else tirx.floordiv(a, b)


def power(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """a**b; small constant exponents by multiplication and root, else libm's pow."""
    exponent = float(b.value) if isinstance(b, tirx.FloatImm | tirx.IntImm) else None
    if not _is_float(a):
        if exponent is not None and 0 <= exponent <= _MAX_CHAIN:
            return _chain(a, int(exponent))
        return tirx.pow(a.astype("float64"), b.astype("float64")).astype(sm.dtype_of(a))
    if exponent is None or abs(exponent) > _MAX_CHAIN:
        return in_float32(tirx.pow)(a, b)
    base = a
    # Whole, half and quarter exponents: whole powers of the base, its root, the root of that.
    for whole in (exponent, 2 * exponent, 4 * exponent):
        if whole == int(whole) and abs(whole) <= _MAX_CHAIN:
            y = _chain(base, abs(int(whole)))
            return y if exponent >= 0 else _const(1.0, a) / y
        base = _root(base)
    return in_float32(tirx.pow)(a, b)


def _root(x: tirx.Expr) -> tirx.Expr:
    """x**0.5 as pow has it: +0.0 at -0.0 and infinity at -infinity, where sqrt has -0.0 and NaN."""
    root = tirx.Select(tirx.EQ(x, _const(0.0, x)), _const(0.0, x), tirx.sqrt(x))
    return tirx.Select(tirx.EQ(x, _const(float("-inf"), x)), _const(float("inf"), x), root)


def _chain(x: tirx.Expr, exponent: int) -> tirx.Expr:
    """x**exponent by squaring."""
    result = None
    square = x
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        square = square * square if exponent else square
    return _const(1, x) if result is None else result
