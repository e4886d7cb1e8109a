"""Evaluate operators whose inputs are all constants, in numpy.

TVM's own FoldConstant compiles a kernel for every expression (11 s for ResNet-50's batch norms);
these are microseconds each. Operators without a numpy rule are left in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df

# A folded constant may not be this much larger than its inputs: broadcasts stay operators.
_MAX_GROWTH_BYTES = 1 << 20

Rule = Callable[[relax.Call, list[np.ndarray]], np.ndarray]


def _shape_result(call: relax.Call, a: list[np.ndarray]) -> np.ndarray:
    return (
        np.broadcast_to(a[0], df.shape_of(call))
        if a[0].size != _size(call)
        else (a[0].reshape(df.shape_of(call)))
    )


def _size(call: relax.Call) -> int:
    return int(np.prod(df.shape_of(call), dtype=np.int64))


def _permute(call: relax.Call, a: list[np.ndarray]) -> np.ndarray:
    axes = call.attrs.axes
    return np.transpose(a[0], None if axes is None else [int(x) for x in axes])


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b; of whole numbers the part before the point, in their own precision."""
    if a.dtype.kind == "f":
        return a / b
    floor, rest = a // b, a % b
    return floor + ((rest != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def _dequantize(call: relax.Call, a: list[np.ndarray]) -> np.ndarray:
    shape = [1] * a[0].ndim
    if a[1].size > 1:
        shape[int(call.attrs.axis)] = -1
    zero = a[2].astype("int32").reshape(shape if a[2].size > 1 else [1] * a[0].ndim)
    return (a[0].astype("int32") - zero).astype("float32") * a[1].reshape(shape)


_RULES: dict[str, Rule] = {
    "relax.dequantize": _dequantize,
    "relax.reshape": _shape_result,
    "relax.expand_dims": _shape_result,
    "relax.squeeze": _shape_result,
    "relax.flatten": _shape_result,
    "relax.broadcast_to": _shape_result,
    "relax.permute_dims": _permute,
    "relax.astype": lambda c, a: a[0].astype(df.dtype_of(c)),
    "relax.add": lambda c, a: a[0] + a[1],
    "relax.subtract": lambda c, a: a[0] - a[1],
    "relax.multiply": lambda c, a: a[0] * a[1],
    "relax.divide": lambda c, a: _quotient(a[0], a[1]),
    # In the result's type: products of bytes are sums of integers.
    "relax.matmul": lambda c, a: a[0].astype(df.dtype_of(c)) @ a[1].astype(df.dtype_of(c)),
    "relax.power": lambda c, a: a[0] ** a[1],
    "relax.maximum": lambda c, a: np.maximum(a[0], a[1]),
    "relax.minimum": lambda c, a: np.minimum(a[0], a[1]),
    "relax.negative": lambda c, a: -a[0],
    "relax.sqrt": lambda c, a: np.sqrt(a[0]),
    "relax.rsqrt": lambda c, a: 1 / np.sqrt(a[0]),
    "relax.exp": lambda c, a: np.exp(a[0]),
    "relax.abs": lambda c, a: np.abs(a[0]),
    "relax.take": lambda c, a: np.take(
        a[0], a[1], axis=None if c.attrs.axis is None else int(c.attrs.axis)
    ),
    "relax.where": lambda c, a: np.where(a[0], a[1], a[2]),
    "relax.equal": lambda c, a: a[0] == a[1],
    "relax.less": lambda c, a: a[0] < a[1],
    "relax.greater": lambda c, a: a[0] > a[1],
}


@tvm.transform.module_pass(opt_level=0, name="FoldConstants")
class FoldConstants:
    """Replace operators on constants by their value; dtypes and shapes stay as Relax has them."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Fold every function named `main`."""
        return df.rebuild(mod, _fold)


def _fold(_: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
    if df.op_name(expr) == "relax.shape_to_tensor":
        return df.constant(np.array([int(n) for n in expr.args[0].ty.values], "int64"))
    rule = _RULES.get(df.op_name(expr))
    if rule is None:
        return expr
    tensors = [a for a in expr.args if isinstance(a.ty, relax.TensorType)]
    arrays = [df.value_of(a) for a in tensors]
    if not arrays or any(a is None for a in arrays):
        return expr
    known = [a for a in arrays if a is not None]
    with np.errstate(all="ignore"):
        value = rule(_Typed(expr, var), known)
    value = np.asarray(value).astype(df.dtype_of(var), copy=False)
    limit = sum(a.nbytes for a in known) + _MAX_GROWTH_BYTES
    # Float weights are what the kernels read.
    if value.nbytes > limit and df.op_name(expr) != "relax.dequantize":
        return expr
    return df.constant(value.reshape(df.shape_of(var)))


class _Typed:
    """A call seen with the type of the variable it is bound to: it may not be normalised yet."""

    def __init__(self, call: relax.Call, var: relax.Var) -> None:
        self.attrs, self.ty = call.attrs, var.ty
