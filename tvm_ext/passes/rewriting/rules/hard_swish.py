"""Swish by straight lines and a parabola."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.pattern import Either, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule

_X = Value("x")


@register_rule
class HardSwish(Rule):
    """No exponential and no division, but another function: it is furthest off at x = 3, -3."""

    name = "hard_swish"
    formula = "x * sigmoid(x) -> x * clip(x + 3, 0, 6) / 6"
    tolerance = 0.143  # 3 - 3 * sigmoid(3)
    optional = True
    pattern = Either(Op("nn.silu", _X), Op("multiply", _X, Op("sigmoid", _X)))

    def refuses(self, match: Match) -> str:
        dtype = df.dtype_of(match["x"])
        return "" if dtype in ("float32", "float64") else f"dtype {dtype}"

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        x, dtype = match["x"], df.dtype_of(match["x"])
        moved = builder.emit(relax.op.add(x, relax.const(3, dtype)))
        gate = builder.emit(relax.op.clip(moved, 0, 6))
        sixth = builder.emit(relax.op.multiply(x, relax.const(1 / 6, dtype)))
        return relax.op.multiply(sixth, gate)
