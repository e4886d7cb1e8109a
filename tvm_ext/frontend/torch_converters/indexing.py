"""Slices and gathers. Indices computed at run time never read memory out of bounds."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.indexing import convert_gather, convert_one_hot
from tvm_ext.frontend.onnx_converters.values import const, constant, dtype_of, shape_of
from tvm_ext.frontend.torch_registry import Call, converts

aten = torch.ops.aten


@converts(aten.slice.Tensor)
def convert_slice(call: Call) -> relax.Expr:
    """Convert a slice along one axis; a whole axis is no operator."""
    data = call["self"]
    axis = call["dim"] % len(shape_of(data))
    size = shape_of(data)[axis]
    begin, end, step = slice(call["start"], call["end"], call["step"]).indices(size)
    if (begin, end, step) == (0, size, 1):
        return data
    return relax.op.strided_slice(data, [axis], [begin], [max(begin, end)], [step])


@converts(aten.select.int)
def convert_select(call: Call) -> relax.Expr:
    """Convert one index along one axis."""
    index = const(call["index"], "int64")
    return call.onnx(convert_gather, [call["self"], index], axis=call["dim"])


@converts(aten.index_select.default)
def convert_index_select(call: Call) -> relax.Expr:
    """Convert a vector of indices along one axis."""
    return call.onnx(convert_gather, [call["self"], call["index"]], axis=call["dim"])


@converts(aten.embedding.default)
def convert_embedding(call: Call) -> relax.Expr:
    """Convert a look-up of rows."""
    return relax.op.take(call["weight"], call["indices"], 0, mode="clip")


@converts(aten.one_hot.default)
def convert_one_hots(call: Call) -> relax.Expr:
    """Convert indices to rows with a single one."""
    if call["num_classes"] < 0:
        raise ModelError("num_classes isn't given; the shape would depend on the data")
    depth, values = const(call["num_classes"], "int64"), const([0, 1], "int64")
    return call.onnx(convert_one_hot, [call["self"], depth, values])


@converts(aten.index.Tensor)
def convert_index(call: Call) -> relax.Expr:
    """Convert ``self[indices]``, where None is a whole axis.

    The indexed axes become one, so that a single ``take`` along it reads all elements. Where torch
    gathers axes that don't lie side by side, the result has them in front.
    """
    data = call["self"]
    given = {axis: index for axis, index in enumerate(call["indices"]) if index is not None}
    if any(dtype_of(index) in ("bool", "uint8") for index in given.values()):
        raise ModelError("a boolean mask as index: the shape would depend on the data")
    axes = list(given)
    first = axes[0]
    if axes != list(range(first, first + len(axes))):
        rest = [axis for axis in range(len(shape_of(data))) if axis not in given]
        data = call.emit(relax.op.permute_dims, data, [*axes, *rest])
        first = 0
    shape = shape_of(data)
    sizes = shape[first : first + len(axes)]
    if len(axes) > 1:
        data = call.emit(
            relax.op.reshape, data, (*shape[:first], prod(sizes), *shape[first + len(axes) :])
        )
    index = _flat_index(call, list(given.values()), sizes)
    return relax.op.take(data, index, first, mode="clip")


def _flat_index(call: Call, indices: list[relax.Expr], sizes: tuple[int, ...]) -> relax.Expr:
    """Positions, in row-major order, of what `indices` say together."""
    indices = [wrapped(call, i, n) for i, n in zip(indices, sizes, strict=True)]
    values = [constant(index) for index in indices]
    if all(value is not None for value in values):
        return const(np.ravel_multi_index(np.broadcast_arrays(*values), sizes), "int64")
    flat = indices[0]
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        flat = call.emit(relax.op.multiply, flat, const(size, "int64"))
        flat = call.emit(relax.op.add, flat, index)
    return flat


def wrapped(call: Call, index: relax.Expr, size: int) -> relax.Expr:
    """An index as int64, with negative ones, which count from the end, made positive."""
    value = constant(index)
    if value is not None:
        return const(np.where(value < 0, value + size, value), "int64")
    if dtype_of(index) != "int64":
        index = call.emit(relax.op.astype, index, "int64")
    negative = call.emit(relax.op.less, index, const(0, "int64"))
    positive = call.emit(relax.op.add, index, const(size, "int64"))
    return call.emit(relax.op.where, negative, positive, index)


@converts(aten.unfold.default)
def convert_unfold(call: Call) -> relax.Expr:
    """Convert windows along one axis, which become a dimension of their own at the end."""
    data, size, step = call["self"], call["size"], call["step"]
    rank = len(shape_of(data))
    axis = call["dimension"] % rank
    starts = np.arange(0, shape_of(data)[axis] - size + 1, step)
    index = const(starts[:, None] + np.arange(size), "int64")
    windows = call.emit(relax.op.take, data, index, axis, mode="clip")
    order = [a for a in range(rank + 1) if a != axis + 1]
    return relax.op.permute_dims(windows, [*order, axis + 1])


@converts(aten.expand.default)
def convert_expand(call: Call) -> relax.Expr:
    """Convert a broadcast; one that changes nothing is no operator."""
    return call.broadcast(call["self"])


@converts(aten.copy.default)
def convert_copy(call: Call) -> relax.Expr:
    """Convert the value that a tensor has once another was copied into it."""
    return call.broadcast(call.cast("src"))
