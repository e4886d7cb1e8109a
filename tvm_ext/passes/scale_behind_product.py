"""(x * c) @ y -> (x @ y) * c for a number c: scaling becomes a step on the product's result.

Attention scales its queries. In the product's kernel that costs nothing, while before it the
queries pass through memory once more. Another value is rounded, once; and the product overflows
where it does without the scale.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.moves import moves_of

_Env = dict[Any, Any]


@tvm.transform.module_pass(opt_level=0, name="ScaleBehindProduct")
class ScaleBehindProduct:
    """Move scales that only a product of two computed tensors reads, through moves between them."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`."""
        exprs = dict(df.bindings(mod["main"]))
        readers = df.uses(mod["main"])
        # The scale before each operand of a product that has one.
        before = {
            (var, side): scale
            for var, expr in exprs.items()
            if _is_product(expr)
            for side, arg in enumerate(expr.args)
            if (scale := _scale(arg, exprs, readers)) is not None
        }
        dropped = {scale: df.value_of(exprs[scale].args[1]) for scale in before.values()}

        def rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
            if var in dropped:
                return expr.args[0]
            for side in (0, 1):
                if (var, side) in before:
                    factor = df.constant(dropped[before[var, side]].reshape(()))
                    expr = relax.op.multiply(builder.emit(expr), factor)
            return expr

        return df.rebuild(mod, rewrite)


def _is_product(expr: Any) -> bool:
    return df.op_name(expr) == "relax.matmul" and all(df.value_of(a) is None for a in expr.args)


def _scale(arg: Any, exprs: _Env, readers: dict[Any, list[Any]]) -> Any:
    """The variable of ``x * c`` that `arg` is, perhaps moved, if nothing else reads it."""
    while len(readers.get(arg, ())) == 1 and arg in exprs:
        expr = exprs[arg]
        if df.op_name(expr) == "relax.multiply":
            factor = df.value_of(expr.args[1])
            whole = factor is not None and factor.size == 1
            return arg if whole and df.shape_of(expr) == df.shape_of(expr.args[0]) else None
        if moves_of(expr) is None:
            return None
        arg = expr.args[0]
    return None
