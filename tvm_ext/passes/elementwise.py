"""Which Relax operators are elementwise, and the scalar step that each becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax, tirx

from tvm_ext.passes import dataflow as df
from tvm_ext.schedules.epilogue import SCALAR_OPS, Ref, Step

# Relax name -> scalar name, where they differ or attributes have to be carried over.
_RENAMED = {
    "relax.nn.relu": "relu",
    "relax.nn.relu6": "relu6",
    "relax.nn.silu": "silu",
    "relax.nn.gelu": "gelu",
    "relax.nn.gelu_tanh": "gelu_tanh",
    "relax.nn.leakyrelu": "leakyrelu",
    "relax.nn.prelu": "prelu",
    "relax.nn.softplus": "softplus",
    "relax.astype": "cast",
}
_ATTRIBUTES: dict[str, Callable[[relax.Call], tuple[float, ...]]] = {
    "relax.clip": lambda c: (_number(c.args[1]), _number(c.args[2])),
    "relax.nn.leakyrelu": lambda c: (float(c.attrs.alpha),),
    "relax.nn.softplus": lambda c: (float(c.attrs.beta), float(c.attrs.threshold)),
}
# Arguments that are not tensors.
_TENSOR_ARGS = {"relax.clip": 1}


def scalar_name(expr: Any) -> str:
    """The scalar operation of an elementwise call, or an empty string for any other expression."""
    name = df.op_name(expr)
    if not name:
        return ""
    scalar = _RENAMED.get(name, name.removeprefix("relax."))
    if scalar not in SCALAR_OPS or not name.startswith("relax."):
        return ""
    # LLVM crashes on vectors of bfloat16; TVM's own operators widen each value.
    if "bfloat16" in (df.dtype_of(expr), *(df.dtype_of(a) for a in tensor_args(expr))):
        return ""
    if name == "relax.astype" and "float" not in df.dtype_of(expr) + df.dtype_of(expr.args[0]):
        return scalar if df.dtype_of(expr) != "bool" else ""
    if name == "relax.nn.softplus" and not _is_plain_softplus(expr):
        return ""
    return scalar


def _is_plain_softplus(expr: relax.Call) -> bool:
    """Whether it's log(1 + exp(x)) in float32: a threshold from 15 on makes no difference."""
    return float(expr.attrs.beta) == 1 and float(expr.attrs.threshold) >= 15


def tensor_args(expr: relax.Call) -> list[Any]:
    """The tensors that an elementwise call reads."""
    return list(expr.args[: _TENSOR_ARGS.get(df.op_name(expr), len(expr.args))])


def to_step(expr: relax.Call, refs: list[Ref]) -> Step:
    """The step for an elementwise call whose tensor arguments are `refs`."""
    attributes = _ATTRIBUTES.get(df.op_name(expr), lambda _: ())(expr)
    return Step(scalar_name(expr), tuple(refs), attributes, df.dtype_of(expr))


def aligned_shape(expr: relax.Call, position: int, rank: int) -> tuple[int, ...]:
    """Shape of an argument, extended with ones to the output's rank (a PRelu slope by its axis)."""
    shape = df.shape_of(tensor_args(expr)[position])
    if df.op_name(expr) == "relax.nn.prelu" and position == 1:
        full = [1] * rank
        full[int(expr.attrs.axis)] = int(np.prod(shape, dtype=np.int64))
        return tuple(full)
    return (1,) * (rank - len(shape)) + shape


def _number(expr: Any) -> float:
    if isinstance(expr, (tirx.IntImm, tirx.FloatImm)):
        return float(expr.value)
    inner = getattr(expr, "value", expr)
    if isinstance(inner, (tirx.IntImm, tirx.FloatImm)):
        return float(inner.value)
    return float(inner.numpy()) if hasattr(inner, "numpy") else float(inner)
