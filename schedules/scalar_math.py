"""Scalar functions that LLVM can vectorise, exact at NaN, infinity and -0.0.

`tirx.exp` and the like become one libm call for every lane. These are polynomials in float32
arithmetic, with at most 2 ulp of error (exp) or 4e-7 absolute (tanh, sigmoid, erf); other
precisions call libm. Comparisons are written so that a NaN argument comes out as NaN, where
`tirx.max` would drop it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import tirx

_LOG2E = 1.44269504088896341
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194440e-4
_EXP_UNDERFLOW = -87.33654
_EXP_OVERFLOW = 88.72283
# Below it e**x is less than half of the smallest subnormal number.
_EXP_VANISHES = -104.0
# Cephes' minimax coefficients for exp(r) - 1 - r over |r| <= ln(2)/2, highest power first.
_EXP_POLY = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
    4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
)  # fmt: skip
# Minimax coefficients of the relative error of exp(r) over |r| <= ln(2)/2, by Remez' algorithm;
# 8e-8 before rounding.
_SHORT_EXP_POLY = (
    8.2985380908e-3, 4.1916568203e-2, 1.6667565473e-1, 4.9998881417e-1, 9.9999969276e-1,
    1.0000000735,
)  # fmt: skip
_LN2 = 0.69314718055994531
# Adding it rounds a float32 to a whole number, which its low bits then hold.
_ROUNDER = 1.5 * 2.0**23
_ROUNDER_BITS = 0x4B400000
# erf(x) / x = P(s) / Q(s), s = x^2 <= 3.92^2, lowest power first: a rational fit by iteratively
# reweighted least squares of the relative error, 5e-8 before rounding. Where s is cut off erf is 1
# in float32, and x P / Q grows beyond it.
_ERF_LIMIT = 3.92
_ERF_P = (
    1.1283791092, 1.9991645504e-1, 5.0572110632e-2, 3.7011462040e-3, 1.4183047074e-4,
    -1.9575694811e-6, 1.9921177041e-8,
)  # fmt: skip
_ERF_Q = (1.0, 5.1050300525e-1, 1.1499493115e-1, 1.4352380460e-2, 9.5589704975e-4)


def dtype_of(x: tirx.Expr) -> str:
    """The scalar type of an expression, as numpy names it."""
    return str(x.ty.dtype)


def _c(value: float, like: tirx.Expr) -> tirx.Expr:
    return tirx.const(value, dtype_of(like))


def libm(name: str, x: tirx.Expr) -> tirx.Expr:
    """libm's function for each lane. TVM's own of some names cancel, or overflow, near the ends."""
    dtype = dtype_of(x)
    return tirx.call_pure_extern(dtype, f"{name}f" if dtype == "float32" else name, x)


def _is_f32(x: tirx.Expr) -> bool:
    return dtype_of(x) == "float32"


def horner(coefficients: Sequence[float], x: tirx.Expr) -> tirx.Expr:
    """The polynomial in x, highest power first."""
    total = _c(coefficients[0], x)
    for c in coefficients[1:]:
        total = total * x + _c(c, x)
    return total


def maximum(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """The larger of two; NaN if either is NaN (numpy.maximum)."""
    if not dtype_of(a).startswith("float"):
        return tirx.max(a, b)
    # a > b is false for NaN in either: then b unless a is the NaN.
    return tirx.Select(tirx.any(a > b, tirx.isnan(a)), a, b)


def minimum(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """The smaller of two; NaN if either is NaN (numpy.minimum)."""
    if not dtype_of(a).startswith("float"):
        return tirx.min(a, b)
    return tirx.Select(tirx.any(a < b, tirx.isnan(a)), a, b)


def relu(x: tirx.Expr) -> tirx.Expr:
    """max(x, 0), one instruction on every target; NaN and -0.0 pass."""
    if dtype_of(x).startswith("uint"):
        return x  # TVM aborts the process when it has to simplify an unsigned x < 0
    return tirx.Select(x < _c(0, x), _c(0, x), x)


def clip(x: tirx.Expr, low: float, high: float) -> tirx.Expr:
    """x limited to [low, high]; NaN passes."""
    if not dtype_of(x).startswith("float"):
        info = np.iinfo(dtype_of(x))
        bounds = (int(max(low, info.min)), int(min(high, info.max)))
        return tirx.max(tirx.min(x, _c(bounds[1], x)), _c(bounds[0], x))
    if low != float("-inf"):
        x = tirx.Select(x < _c(low, x), _c(low, x), x)
    if high != float("inf"):
        x = tirx.Select(x > _c(high, x), _c(high, x), x)
    return x


def leaky_relu(x: tirx.Expr, slope: tirx.Expr) -> tirx.Expr:
    """x where positive, slope * x where negative."""
    return tirx.Select(x < _c(0, x), x * slope, x)


def divide(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    """True division for floats, truncation for integers (as ONNX Div)."""
    if dtype_of(a).startswith("float"):
        return a / b
    return tirx.truncdiv(a, b)


def exp(x: tirx.Expr) -> tirx.Expr:
    """e**x by reduction to [-ln2/2, ln2/2] and a polynomial of degree 7 (Cephes expf).

    Results below the smallest normal number are 0: for sums and quotients in which they vanish.
    """
    if not _is_f32(x):
        return tirx.exp(x)
    # Between the clamps the result is a normal number, so that adding n to its exponent is 2**n.
    y, whole = _exp_parts(x, _EXP_UNDERFLOW)
    y = tirx.reinterpret("float32", tirx.reinterpret("int32", y) + (whole << 23))
    y = tirx.Select(x < _c(_EXP_UNDERFLOW, x), _c(0.0, x), y)
    return _or_infinite(x, y)


def short_exp(x: tirx.Expr) -> tirx.Expr:
    """e**x of a float32 x <= 0, as a softmax needs it: two thirds of the operations of `exp`.

    Results below the smallest normal number are 0; NaN passes. The relative error is at most
    3e-7, and 3e-9 |x| more, which is what a single product with ln(2) costs.
    """
    # At the limit n is -127, whose bits make the factor 2**n zero.
    safe = clip(x, -127 * _LN2, float("inf"))
    bits = tirx.reinterpret("int32", safe * _c(_LOG2E, x) + _c(_ROUNDER, x))
    # Of the bits, lest TVM simplify it to what was rounded.
    n = tirx.reinterpret("float32", bits) - _c(_ROUNDER, x)
    power = tirx.reinterpret("float32", (bits << 23) + tirx.const(127 << 23, "int32"))
    return horner(_SHORT_EXP_POLY, safe - n * _c(_LN2, x)) * power


def gradual_exp(x: tirx.Expr) -> tirx.Expr:
    """e**x down to the smallest subnormal number; inside other functions it compiles slowly."""
    if not _is_f32(x):
        return tirx.exp(x)
    y, whole = _exp_parts(x, _EXP_VANISHES)
    # Where the result is subnormal, 2**24 times it is not: only the last product is rounded.
    tiny = x < _c(_EXP_UNDERFLOW, x)
    whole = whole + tirx.Select(tiny, tirx.const(24, "int32"), tirx.const(0, "int32"))
    y = tirx.reinterpret("float32", tirx.reinterpret("int32", y) + (whole << 23))
    return _or_infinite(x, y * tirx.Select(tiny, _c(2.0**-24, x), _c(1.0, x)))


def _exp_parts(x: tirx.Expr, least: float) -> tuple[tirx.Expr, tirx.Expr]:
    """y and n with e**x = y 2**n, x limited to [least, _EXP_OVERFLOW]."""
    safe = clip(x, least, _EXP_OVERFLOW)
    rounded = safe * _c(_LOG2E, x) + _c(_ROUNDER, x)
    # Not rounded - _ROUNDER, which TVM would simplify to what was rounded.
    whole = tirx.reinterpret("int32", rounded) - tirx.const(_ROUNDER_BITS, "int32")
    n = whole.astype("float32")
    r = safe - n * _c(_LN2_HIGH, x) - n * _c(_LN2_LOW, x)
    return horner(_EXP_POLY, r) * (r * r) + r + _c(1.0, x), whole


def _or_infinite(x: tirx.Expr, y: tirx.Expr) -> tirx.Expr:
    """y, or past the largest number infinity, or the NaN whose bits were computed with."""
    return tirx.Select(x <= _c(_EXP_OVERFLOW, x), y, x + _c(float("inf"), x))


def sigmoid(x: tirx.Expr) -> tirx.Expr:
    """1 / (1 + e**-x); saturates exactly at 0 and 1."""
    if not _is_f32(x):
        return tirx.sigmoid(x)
    one = _c(1.0, x)
    return one / (one + exp(-x))


def tanh(x: tirx.Expr) -> tirx.Expr:
    """2 sigmoid(2x) - 1 away from zero, an odd Taylor polynomial near it, where that cancels."""
    if not _is_f32(x):
        return libm("tanh", x)
    square = x * x
    # A product, so that -0.0 stays.
    small = x * horner(
        (-1382.0 / 155925, 62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3, 1.0), square
    )
    two = _c(2.0, x)
    large = _c(1.0, x) - two / (exp(two * x) + _c(1.0, x))
    return tirx.Select(square < _c(0.09, x), small, large)


def erf(x: tirx.Expr) -> tirx.Expr:
    """Error function, by a rational approximation; exactly 1 and -1 far from zero."""
    if not _is_f32(x):
        return tirx.erf(x)
    s = clip(x * x, float("-inf"), _ERF_LIMIT**2)
    return clip(x * (horner(_ERF_P[::-1], s) / horner(_ERF_Q[::-1], s)), -1.0, 1.0)


def gelu(x: tirx.Expr) -> tirx.Expr:
    """x/2 (1 + erf(x / sqrt 2)), as a product, so that -0.0 stays."""
    return _c(0.5, x) * x * (_c(1.0, x) + erf(x * _c(0.70710678118654752, x)))


def gelu_tanh(x: tirx.Expr) -> tirx.Expr:
    """The tanh form of GELU."""
    inner = _c(0.7978845608028654, x) * (x + _c(0.044715, x) * x * x * x)
    return _c(0.5, x) * x * (_c(1.0, x) + tanh(inner))
