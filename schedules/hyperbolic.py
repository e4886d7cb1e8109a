"""Hyperbolic functions and their inverses; the rules are those of `scalar_math`."""

from __future__ import annotations

from tvm import tirx

from tvm_ext.schedules import scalar_functions as sf
from tvm_ext.schedules import scalar_math as sm

# From here on e**-x adds nothing to e**x in float32.
_NO_SMALL_HALF = 20.0
# atanh(a) / a as a polynomial in a**2, highest power first: enough for |a| < 0.3 in float32.
_ATANH_POLY = tuple(1.0 / k for k in range(13, 0, -2))


def _const(value: float, like: tirx.Expr) -> tirx.Expr:
    return tirx.const(value, sm.dtype_of(like))


def asinh(x: tirx.Expr) -> tirx.Expr:
    """Inverse hyperbolic sine, odd by construction: the logarithm of |x| never cancels."""
    if sm.dtype_of(x) == "float64":
        return sm.libm("asinh", x)
    a = tirx.abs(x)
    y = sf.log(a + tirx.sqrt(a * a + _const(1.0, x)))
    y = tirx.Select(a > _const(1e18, x), sf.log(a) + _const(0.6931471805599453, x), y)
    y = tirx.Select(a < _const(0.05, x), a - a * a * a * _const(1.0 / 6.0, x), y)
    return _with_sign_of(x, y)


def sinh(x: tirx.Expr) -> tirx.Expr:
    """(e**x - e**-x) / 2, from expm1, so that it keeps its accuracy at zero."""
    if sm.dtype_of(x) == "float64":
        return sm.libm("sinh", x)
    half = _const(0.5, x)
    a = tirx.abs(x)
    e = sf.expm1(a)
    y = half * (e + e / (e + _const(1.0, x)))
    # Where e**a is infinite its half need not be.
    root = sm.exp(half * a)
    y = tirx.Select(a > _const(_NO_SMALL_HALF, x), half * root * root, y)
    return _with_sign_of(x, tirx.Select(tirx.isnan(x), x, y))


def cosh(x: tirx.Expr) -> tirx.Expr:
    """(e**x + e**-x) / 2, of the square of e**(|x| / 2), which does not overflow before."""
    half = _const(0.5, x)
    root = sm.exp(half * tirx.abs(x))
    return half * root * root + half / root / root


def atanh(x: tirx.Expr) -> tirx.Expr:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."""
    if sm.dtype_of(x) == "float64":
        return sm.libm("atanh", x)
    one = _const(1.0, x)
    small = x * sm.horner(_ATANH_POLY, x * x)  # a product, so that -0.0 stays
    large = _const(0.5, x) * sf.log((one + x) / (one - x))
    return tirx.Select(tirx.abs(x) < _const(0.3, x), small, large)


def _with_sign_of(x: tirx.Expr, y: tirx.Expr) -> tirx.Expr:
    """y >= 0 with the sign of x, that of -0.0 too, as x itself is y's value at zero."""
    y = tirx.Select(x < _const(0.0, x), -y, y)
    return tirx.Select(tirx.EQ(x, _const(0.0, x)), x, y)
