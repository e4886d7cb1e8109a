"""Reductions over axes; ``exclude`` means all the others."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import (
    const,
    constant,
    dtype_of,
    scalar,
    shape_of,
)
from tvm_ext.frontend.relay.converters.moves import permute, reshape
from tvm_ext.frontend.relay.registry import OpCall, converts

_PLAIN: dict[str, tuple[Callable[..., relax.Expr], Callable[..., np.ndarray]]] = {
    "max": (relax.op.max, np.max),
    "min": (relax.op.min, np.min),
    "prod": (relax.op.prod, np.prod),
    "sum": (relax.op.sum, np.sum),
}


@converts(*_PLAIN)
def convert_reduction(call: OpCall) -> relax.Expr:
    """Convert a reduction in the tensor's own dtype."""
    data, axes, keepdims = _arguments(call)
    operator, compute = _PLAIN[call.name]
    value = constant(data)
    if value is not None:
        with np.errstate(over="ignore"):
            result = compute(value, axis=tuple(axes), keepdims=keepdims)
        return const(np.asarray(result).astype(value.dtype))
    return operator(data, axes, keepdims) if axes else data


@converts("mean")
def convert_mean(call: OpCall) -> relax.Expr:
    """Convert a mean; of whole numbers rounded towards zero."""
    data, axes, keepdims = _arguments(call)
    if "int" not in dtype_of(data):
        return relax.op.mean(data, axes, keepdims)
    total = call.emit(relax.op.sum, data, axes, keepdims)
    return relax.op.divide(total, scalar(prod(shape_of(data)[a] for a in axes), total))


@converts("all", "any")
def convert_all_or_any(call: OpCall) -> relax.Expr:
    """Convert a reduction of truth values, through numbers."""
    data, axes, keepdims = _arguments(call)
    numbers = call.emit(relax.op.astype, data, "int8")
    extremum = relax.op.min if call.name == "all" else relax.op.max
    return relax.op.astype(call.emit(extremum, numbers, axes, keepdims), "bool")


@converts("argmax", "argmin")
def convert_position(call: OpCall) -> relax.Expr:
    """Convert the index of the largest or smallest element, int32; the first or the last one.

    Over several axes it counts through them in order.
    """
    data, axes, keepdims = _arguments(call)
    shape = shape_of(data)
    kept = [i for i in range(len(shape)) if i not in axes]
    size = prod(shape[i] for i in axes)
    rows = permute(call.bb, data, [*kept, *axes])
    rows = reshape(call.bb, rows, [*(shape[i] for i in kept), size])
    last = bool(call.attr("select_last_index", False))
    if last:
        rows = call.emit(relax.op.flip, rows, len(kept))
    operator = relax.op.argmax if call.name == "argmax" else relax.op.argmin
    found = call.emit(relax.op.astype, call.emit(operator, rows, len(kept)), "int32")
    if last:
        found = call.emit(relax.op.subtract, scalar(size - 1, found), found)
    wanted = [1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes]
    return reshape(call.bb, found, wanted)


@converts("variance")
def convert_variance(call: OpCall) -> relax.Expr:
    """Convert the mean square of the differences from the second argument, the mean."""
    data, axes, keepdims = _arguments(call)
    centred = call.emit(relax.op.subtract, data, call.tensor(1))
    square = call.emit(relax.op.multiply, centred, centred)
    if not call.attr("unbiased", False):
        return relax.op.mean(square, axes, keepdims)
    total = call.emit(relax.op.sum, square, axes, keepdims)
    return relax.op.divide(total, scalar(prod(shape_of(data)[a] for a in axes) - 1, total))


def _arguments(call: OpCall) -> tuple[relax.Expr, list[int], bool]:
    """The tensor, the axes to reduce, and whether they stay as one element."""
    data = call.tensor(0)
    rank = len(shape_of(data))
    axis = call.attr("axis")
    given = [axis] if isinstance(axis, int) else list(axis or [])
    axes = sorted({int(a) % rank for a in given})
    if call.attr("exclude", False):
        axes = [i for i in range(rank) if i not in axes]
    elif not axes:
        axes = list(range(rank))
    return data, axes, bool(call.attr("keepdims", False))
