"""Sorting, running sums and triangles."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import dtype_of, shape_of
from tvm_ext.frontend.relay.converters.moves import reshape
from tvm_ext.frontend.relay.registry import OpCall, converts

_RETURNS = ("both", "values", "indices")


@converts("sort")
def convert_sort(call: OpCall) -> relax.Expr:
    """Convert sorting along one axis."""
    descending = not call.attr("is_ascend", True)
    return relax.op.sort(call.tensor(0), _axis(call), descending)


@converts("argsort")
def convert_argsort(call: OpCall) -> relax.Expr:
    """Convert the indices that would sort along one axis."""
    descending = not call.attr("is_ascend", True)
    return relax.op.argsort(call.tensor(0), _axis(call), descending, call.dtype("dtype", "int32"))


@converts("topk", "dyn.topk")
def convert_topk(call: OpCall) -> relax.Expr:
    """Convert the k largest or smallest elements along one axis, in order, and their indices."""
    data = call.tensor(0)
    wanted = str(call.attr("ret_type", "both"))
    if wanted not in _RETURNS:
        raise ModelError(f"ret_type is {wanted!r}; it must be one of {', '.join(_RETURNS)}")
    axis = _axis(call)
    (k,) = call.ints("k", 1)
    size = shape_of(data)[axis]
    return relax.op.topk(
        data,
        size if k < 1 else min(k, size),
        axis,
        wanted,
        not call.attr("is_ascend", False),
        call.dtype("dtype", "int32"),
    )


@converts("cumsum", "cumprod")
def convert_scan(call: OpCall) -> relax.Expr:
    """Convert running sums or products along one axis, of the flat tensor without one."""
    data = call.tensor(0)
    axis = call.attr("axis")
    if axis is None:
        data = reshape(call.bb, data, (int(np.prod(shape_of(data), dtype="int64")),))
    operator = relax.op.cumsum if call.name == "cumsum" else relax.op.cumprod
    # Relay sums booleans as int32.
    default = "int32" if dtype_of(data) == "bool" else dtype_of(data)
    return operator(
        call.cast(data, call.dtype("dtype", default)),
        int(axis or 0) % len(shape_of(data)),
        exclusive=bool(call.attr("exclusive", False)),
    )


@converts("trilu")
def convert_trilu(call: OpCall) -> relax.Expr:
    """Convert to the upper or lower triangle, from the k-th diagonal on."""
    k = int(call.known(1, "k").item())
    operator = relax.op.triu if call.attr("upper", True) else relax.op.tril
    return operator(call.tensor(0), k)


def _axis(call: OpCall) -> int:
    axis = call.attr("axis", -1)
    return int(axis) % len(shape_of(call.tensor(0)))
