"""Division by a constant number."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.pattern import Match, Number, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class DivideByConstant(Rule):
    """A multiplication takes a quarter of a division's time; it rounds once more."""

    name = "divide_by_constant"
    formula = "x / c -> x * (1 / c)"
    tolerance = 1.2e-7
    pattern = Op("divide", Value("x"), Number("c"))

    def refuses(self, match: Match) -> str:
        dtype, c = df.dtype_of(match["x"]), match.array("c")
        if dtype not in ("float32", "float64"):
            return f"dtype {dtype}"
        with np.errstate(all="ignore"):
            inverse = np.abs(1 / c)
        info = np.finfo(dtype)
        if not (np.isfinite(inverse).all() and (inverse >= info.tiny).all()):
            return f"the reciprocal of {c} isn't a normal number"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        c = match.array("c")
        return relax.op.multiply(match["x"], df.constant((1 / c).astype(c.dtype)))
