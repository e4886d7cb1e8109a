"""conv(x, W) + b, times a per-channel scale -> conv(x, W * scale) + b * scale.

``W`` is (K, C/g, *kernel), ``scale`` a scalar or (1, K, 1, ..): row k of W is multiplied by
scale[k], in float64. Constant shifts on either side merge into one. Holds for matmul with a
constant right side, whose columns are scaled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df

_CONVS = ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d")


@tvm.transform.module_pass(opt_level=0, name="FoldScale")
class FoldScale:
    """Fold constant multiplies and adds after a convolution or matmul into its weights and bias."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`."""
        readers = df.uses(mod["main"])
        single = {var for var, users in readers.items() if len(users) == 1}
        producers: dict[Any, tuple[Any, np.ndarray | None]] = {}

        def rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
            name = df.op_name(expr)
            if _foldable(expr) and var in single:
                new = builder.emit(expr, var.name)
                producers[new] = (expr, None)
                return new
            if name not in ("relax.add", "relax.multiply"):
                return expr
            found = _operands(expr, producers)
            if found is None:
                return expr
            old, factor = found
            call, bias = producers[old]
            axis = 1 if df.op_name(call) in _CONVS else len(df.shape_of(old)) - 1
            vector = _per_channel(factor, df.shape_of(old), axis)
            if vector is None or df.shape_of(var) != df.shape_of(old):
                return expr
            if name == "relax.multiply":
                call = _scale(call, vector)
                if call is None:
                    return expr
                bias = None if bias is None else bias * vector
            else:
                bias = vector if bias is None else bias + vector
            new = builder.emit(call)
            if bias is not None:
                shape = [1] * len(df.shape_of(old))
                shape[axis] = -1
                full = np.broadcast_to(bias, df.shape_of(old)[axis]).reshape(shape)
                dtype = df.dtype_of(old)
                new = builder.emit(relax.op.add(new, df.constant(full.astype(dtype))))
            if var in single:
                producers[new] = (call, bias)
            return new

        return relax.transform.DeadCodeElimination()(df.rebuild(mod, rewrite))


def _foldable(expr: Any) -> bool:
    name = df.op_name(expr)
    if name in _CONVS:
        return isinstance(expr.args[1], df.Constant)
    if name == "relax.matmul":
        weight = expr.args[1]
        return isinstance(weight, df.Constant) and len(df.shape_of(weight)) == 2
    return False


def _operands(expr: relax.Call, producers: dict[Any, Any]) -> tuple[Any, np.ndarray] | None:
    """The foldable producer and the constant of a commutative call."""
    for a, b in (expr.args, reversed(expr.args)):
        value = df.value_of(b)
        if a in producers and value is not None:
            return a, value.astype("float64")
    return None


def _per_channel(factor: np.ndarray, shape: tuple[int, ...], axis: int) -> np.ndarray | None:
    """`factor` as a vector over the channel axis (or a scalar), None if it varies elsewhere."""
    if factor.size == 1:
        return factor.reshape(())
    if factor.ndim > len(shape):
        return None
    aligned = factor.reshape((1,) * (len(shape) - factor.ndim) + factor.shape)
    if any(d != 1 for i, d in enumerate(aligned.shape) if i != axis):
        return None
    return aligned.reshape(-1)


def _scale(call: relax.Call, vector: np.ndarray) -> relax.Call | None:
    """The call with scaled weights; None if their type can't hold them."""
    weight = call.args[1].value.numpy()
    if df.op_name(call) in _CONVS and vector.ndim:
        factor = vector.reshape(-1, *(1,) * (weight.ndim - 1))
    else:
        factor = vector
    product = weight * factor
    with np.errstate(over="ignore"):
        scaled = product.astype(weight.dtype)
    exact = weight.dtype.kind in "iu"
    if not (np.array_equal(scaled, product) if exact else np.isfinite(scaled).all()):
        return None
    return relax.Call(call.op, [call.args[0], df.constant(scaled)], call.attrs, call.ty_args)
