"""Powers with small constant exponents."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.constant_power import ConstantPower
from tvm_ext.passes.rewriting.pattern import Match
from tvm_ext.passes.rewriting.rule import register_rule


@register_rule
class Power(ConstantPower):
    """Multiplications instead of a call of powf for each element."""

    name = "power"
    formula = "x^n -> x, x * x, x * x * x, (x * x)^2, 1 / x for n of 1, 2, 3, 4, -1"
    tolerance = 1e-6
    exponents = (1.0, 2.0, 3.0, 4.0, -1.0)

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        x, n = match["x"], match.number("n")
        if n == 1:
            return x
        if n == -1:
            return relax.op.divide(relax.const(1, df.dtype_of(x)), x)
        square = relax.op.multiply(x, x)
        if n == 2:
            return square
        square = builder.emit(square)
        return relax.op.multiply(square, x if n == 3 else square)
