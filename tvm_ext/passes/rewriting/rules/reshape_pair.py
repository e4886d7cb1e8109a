"""Two reshapes in a row."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import reshape
from tvm_ext.passes.rewriting.pattern import VIEWS, Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class ReshapePair(Rule):
    """One operator, or none, stands between those around them."""

    name = "reshape_pair"
    formula = "reshape(reshape(x)) -> reshape(x); squeeze, expand_dims and flatten alike"
    pattern = Op(VIEWS, Op(VIEWS, Value("x")), name="outer")

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        return reshape(match["x"], df.shape_of(match["outer"]))
