"""The approximation of a Gaussian error linear unit by a hyperbolic tangent, written out."""

from __future__ import annotations

from math import pi
from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Either, Match, Number, Op, Value, product
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_X = Value("x")
_CUBE = Either(
    Op("power", _X, Number(value=3.0)),
    Op("multiply", Op("multiply", _X, _X), _X),
)
_INNER = Op("add", _X, Op("multiply", _CUBE, Number(value=0.044715)))
_TANH = Op("tanh", Op("multiply", _INNER, Number(value=(2 / pi) ** 0.5)))


@register_rule
class GeluTanh(Rule):
    """One step in an epilogue, with one reading of x, and no call of powf."""

    name = "gelu_tanh"
    formula = "x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) -> gelu_tanh(x)"
    tolerance = 1e-6
    pattern = product(_X, Number(value=0.5), Op("add", _TANH, Number(value=1.0)))

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        return relax.op.nn.gelu_tanh(match["x"])
