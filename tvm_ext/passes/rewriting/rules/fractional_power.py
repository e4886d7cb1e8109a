"""Powers that square roots make."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.constant_power import ConstantPower
from tvm_ext.passes.rewriting.pattern import Match
from tvm_ext.passes.rewriting.rule import register_rule


@register_rule
class FractionalPower(ConstantPower):
    """One or two square roots instead of a logarithm and an exponential for each element."""

    name = "fractional_power"
    formula = "x^n -> square roots of x, for n of 0.5, -0.5, 0.25, 0.75"
    tolerance = 1e-6
    # The power of -infinity is infinity (0 for n = -1/2), its root NaN; that of -0.0 is 0.0 (inf
    # for n = -1/2), its root -0.0 (-inf).
    fast_math = True
    exponents = (0.5, -0.5, 0.25, 0.75)

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        x, n = match["x"], match.number("n")
        if n == 0.5:
            return relax.op.sqrt(x)
        if n == -0.5:
            return relax.op.rsqrt(x)
        half = builder.emit(relax.op.sqrt(x))
        quarter = relax.op.sqrt(half)
        return quarter if n == 0.25 else relax.op.multiply(half, builder.emit(quarter))
