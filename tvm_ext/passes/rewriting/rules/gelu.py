"""A Gaussian error linear unit that was written out."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Either, Match, Number, Op, Value, product
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_X = Value("x")
_ERF = Either(
    Op("erf", Op("divide", _X, Number(value=2**0.5))),
    Op("erf", Op("multiply", _X, Number(value=0.5**0.5))),
)


@register_rule
class Gelu(Rule):
    """One step in an epilogue, with one reading of x."""

    name = "gelu"
    formula = "x * 0.5 * (1 + erf(x / sqrt(2))) -> gelu(x)"
    tolerance = 1e-6
    pattern = product(_X, Number(value=0.5), Op("add", _ERF, Number(value=1.0)))

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        return relax.op.nn.gelu(match["x"])
