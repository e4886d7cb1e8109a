"""Scatters: assignments and sums into the elements that an index names."""

from __future__ import annotations

import numpy as np
import torch
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.torch_converters.indexing import wrapped
from tvm_ext.frontend.torch_registry import Call, converts

aten = torch.ops.aten


@converts(aten.scatter_add.default)
def convert_scatter_add(call: Call) -> relax.Expr:
    """Convert sums into elements along one axis."""
    return relax.op.scatter_elements(
        call["self"], call["index"], call["src"], call["dim"], reduction="add"
    )


@converts(aten.slice_scatter.default)
def convert_slice_scatter(call: Call) -> relax.Expr:
    """Convert ``self[start:end:step] = src`` along one axis: elements of one or the other."""
    data, source = call["self"], call["src"]
    axis = call["dim"] % len(call.shape)
    size = call.shape[axis]
    places = range(size)[slice(call["start"], call["end"], call["step"])]
    if len(places) == size:
        return source
    if not places:
        return data
    both = call.emit(relax.op.concat, [data, source], axis)
    index = np.arange(size)
    index[places] = size + np.arange(len(places))
    return relax.op.take(both, const(index), axis, mode="clip")


@converts(aten.index_put.default)
def convert_index_put(call: Call) -> relax.Expr:
    """Convert ``self[indices] = values``, or ``+=``, where None is a whole axis.

    The indexed axes go to the front, where the index's columns name them.
    """
    data, values = call["self"], call["values"]
    given = {axis: index for axis, index in enumerate(call["indices"]) if index is not None}
    if any(dtype_of(index) in ("bool", "uint8") for index in given.values()):
        raise ModelError("a boolean mask as index isn't supported")
    axes = list(given)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise ModelError(f"indices for the axes {axes}, which don't lie side by side")
    shape = shape_of(data)
    indices = [wrapped(call, index, shape[axis]) for axis, index in given.items()]
    common = tuple(torch.broadcast_shapes(*(shape_of(index) for index in indices)))
    indices = [call.emit(relax.op.broadcast_to, index, common) for index in indices]
    stacked = call.emit(relax.op.stack, indices, -1)

    before, after = shape[: axes[0]], shape[axes[-1] + 1 :]
    values = call.emit(relax.op.broadcast_to, values, (*before, *common, *after))
    front = list(range(len(before), len(before) + len(common)))
    values = _to_front(call, values, front)
    data = call.emit(
        relax.op.scatter_nd,
        _to_front(call, data, axes),
        stacked,
        values,
        "add" if call["accumulate"] else "update",
    )
    # Undo the move of the axes.
    rest = [axis for axis in range(len(shape)) if axis not in given]
    order = [*axes, *rest]
    return relax.op.permute_dims(data, [order.index(axis) for axis in range(len(shape))])


def _to_front(call: Call, data: relax.Expr, axes: list[int]) -> relax.Expr:
    rest = [axis for axis in range(len(shape_of(data))) if axis not in axes]
    return call.emit(relax.op.permute_dims, data, [*axes, *rest])
