"""A transpose moved across a One-to-One operator, to meet another."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule
from tvm_ext.passes.rewriting.rules.transpose_pair import permutation, transpose

_UNARY = (
    "nn.relu|nn.gelu|nn.gelu_tanh|nn.silu|nn.softplus|nn.leakyrelu|sigmoid|tanh|exp|log|erf|sqrt|"
    "rsqrt|abs|negative|clip|astype|floor|ceil|round|sin|cos|square"
)


@register_rule
class TransposeAcross(Rule):
    """Elementwise operators don't mind the order of elements."""

    name = "transpose_across"
    formula = "transpose(f(transpose(x, p)), q) -> transpose(f(x), p[q])"
    pattern = Op(
        "permute_dims",
        Op(_UNARY, Op("permute_dims", Value("x"), name="inner"), name="f"),
        name="outer",
    )

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        f = match["f"]
        moved = relax.Call(f.op, [match["x"], *list(f.args)[1:]], f.attrs, f.ty_args)
        inner, outer = permutation(match["inner"]), permutation(match["outer"])
        return transpose(builder.emit(moved), [inner[a] for a in outer])
