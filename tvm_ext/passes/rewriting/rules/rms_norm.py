"""A normalisation by the root mean square that was written out."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.axes import reduced_axes
from tvm_ext.passes.rewriting.pattern import (
    Either,
    Match,
    Number,
    Op,
    Unlike,
    Weights,
    product,
)
from tvm_ext.passes.rewriting.rule import Rule, register_rule
from tvm_ext.passes.rewriting.written_norm import CENTRED, refuses_norm

# What is centred belongs to a layer norm, which is that rule's.
_X = Unlike("x", CENTRED)
# The kernel takes no other.
_GAMMA = Weights("gamma")
_SQUARE = Either(Op("multiply", _X, _X), Op("square", _X))
_SHIFTED = Op("add", Op("mean", _SQUARE, name="mean"), Number("epsilon"))
_ROOT = Op("sqrt", _SHIFTED)
_INVERSE = Either(
    Op("rsqrt", _SHIFTED),
    Op("divide", Number(value=1.0), _ROOT),
    Op("power", _SHIFTED, Number(value=-0.5)),
)


@register_rule
class RmsNorm(Rule):
    """Five passes over the data become one kernel."""

    name = "rms_norm"
    formula = "x / sqrt(mean(x^2) + epsilon) * gamma -> rms_norm"
    tolerance = 1e-5
    pattern = Either(
        Op("multiply", Op("divide", _X, _ROOT), _GAMMA), *product(_X, _INVERSE, _GAMMA).patterns
    )

    def refuses(self, match: Match) -> str:
        return refuses_norm(match, ("gamma",))

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        axes = list(reduced_axes(match["mean"]))
        return relax.op.nn.rms_norm(match["x"], match["gamma"], axes, match.number("epsilon"))
