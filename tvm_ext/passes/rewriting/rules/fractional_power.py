"""Powers that square roots make."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.pattern import Match, Number, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_EXPONENTS = (0.5, -0.5, 0.25, 0.75)


@register_rule
class FractionalPower(Rule):
    """One or two square roots instead of a logarithm and an exponential for each element."""

    name = "fractional_power"
    formula = "x^n -> square roots of x, for n of 0.5, -0.5, 0.25, 0.75"
    tolerance = 1e-6
    # The power of -infinity is infinity (0 for n = -1/2), its root NaN; that of -0.0 is 0.0 (inf
    # for n = -1/2), its root -0.0 (-inf).
    fast_math = True
    pattern = Op("power", Value("x"), Number("n"))

    def refuses(self, match: Match) -> str:
        if not df.dtype_of(match["x"]).startswith("float"):
            return f"dtype {df.dtype_of(match['x'])}"
        n = match.number("n")
        return "" if n in _EXPONENTS else f"the exponent {n}"

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        x, n = match["x"], match.number("n")
        if n == 0.5:
            return relax.op.sqrt(x)
        if n == -0.5:
            return relax.op.rsqrt(x)
        half = builder.emit(relax.op.sqrt(x))
        quarter = relax.op.sqrt(half)
        return quarter if n == 0.25 else relax.op.multiply(half, builder.emit(quarter))
