"""Operators that accumulate compute in float32 where their tensors are float16.

A sum of 4096 numbers around 40 is infinite in float16, and one of 0.25 stops growing at 512, while
the mean or the softmax made from it is an ordinary number. In float32 these operators also find
kernels of ours, into which the conversion of their result is fused.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df

_SPATIAL = ("1d", "2d", "3d")
_ACCUMULATING = frozenset(
    {
        "relax.matmul", "relax.einsum", "relax.sum", "relax.mean", "relax.prod", "relax.variance",
        "relax.std", "relax.cumsum", "relax.cumprod", "relax.nn.softmax", "relax.nn.log_softmax",
        "relax.nn.layer_norm", "relax.nn.group_norm", "relax.nn.instance_norm",
        "relax.nn.rms_norm",
        *(f"relax.nn.conv{n}" for n in _SPATIAL),
        *(f"relax.nn.conv{n}_transpose" for n in _SPATIAL),
        *(f"relax.nn.{kind}_pool{n}" for kind in ("avg", "max") for n in _SPATIAL),
        *(f"relax.nn.adaptive_avg_pool{n}" for n in _SPATIAL),
    }
)  # fmt: skip
# Attributes in which some of them name the result's type.
_TYPES = ("out_dtype", "dtype")


@tvm.transform.module_pass(opt_level=0, name="WidenHalf")
class WidenHalf:
    """Convert the operands of accumulating float16 operators to float32, and the result back."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`."""
        return df.rebuild(mod, _widen)


def _widen(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
    if df.op_name(expr) not in _ACCUMULATING or df.dtype_of(var) != "float16":
        return expr
    # A type that the operator names itself would have to be another one in float32.
    if any(str(getattr(expr.attrs, name, None) or "void") != "void" for name in _TYPES):
        return expr
    args = [_float32(builder, arg) for arg in expr.args]
    wide = relax.Call(expr.op, args, expr.attrs, expr.ty_args)
    return relax.op.astype(builder.emit(wide), "float16")


def _float32(builder: relax.BlockBuilder, arg: Any) -> Any:
    """An operand in float32; shapes and integers stay as they are."""
    if isinstance(arg, relax.Tuple):
        return relax.Tuple([_float32(builder, field) for field in arg.fields])
    if not isinstance(arg.ty, relax.TensorType) or df.dtype_of(arg) != "float16":
        return arg
    value = df.value_of(arg)
    if value is not None:
        return df.constant(value.astype("float32"))
    return builder.emit(relax.op.astype(arg, "float32"))
