"""A layer normalisation that was written out."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.axes import reduced_axes
from tvm_ext.passes.rewriting.pattern import Match, Number, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule
from tvm_ext.passes.rewriting.written_norm import CENTRED, refuses_norm

_VARIANCE = Op("mean", Op("multiply", CENTRED, CENTRED), name="variance")
_NORMAL = Op("divide", CENTRED, Op("sqrt", Op("add", _VARIANCE, Number("epsilon"))))


@register_rule
class LayerNorm(Rule):
    """Seven passes over the data become one kernel."""

    name = "layer_norm"
    formula = "(x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * gamma + beta -> layer_norm"
    tolerance = 1e-5
    pattern = Op("add", Op("multiply", _NORMAL, Value("gamma")), Value("beta"))

    def refuses(self, match: Match) -> str:
        mean, variance = match["mean"], match["variance"]
        if reduced_axes(mean) != reduced_axes(variance):
            return "mean and variance are over different axes"
        if not variance.attrs.keepdims:
            return "the variance doesn't keep its axes"
        return refuses_norm(match, ("gamma", "beta"))

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        axes = list(reduced_axes(match["mean"]))
        return relax.op.nn.layer_norm(
            match["x"], match["gamma"], match["beta"], axes, match.number("epsilon")
        )
