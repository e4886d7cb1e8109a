"""What rules for powers with constant exponents have in common."""

from __future__ import annotations

from typing import ClassVar

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.pattern import Match, Number, Op, Value
from tvm_ext.passes.rewriting.rule import Rule


class ConstantPower(Rule):
    """x to the power of one of some numbers n.

    Attributes
    ----------
    exponents : tuple of float
    """

    pattern = Op("power", Value("x"), Number("n"))
    exponents: ClassVar[tuple[float, ...]]

    def refuses(self, match: Match) -> str:
        if not df.dtype_of(match["x"]).startswith("float"):
            return f"dtype {df.dtype_of(match['x'])}"
        n = match.number("n")
        return "" if n in self.exponents else f"the exponent {n}"
