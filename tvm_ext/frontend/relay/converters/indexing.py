"""Gathers and scatters. Relay's N-dimensional ones have the coordinates first, Relax's last."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, constant, scalar, shape_of
from tvm_ext.frontend.relay.converters.elementwise import cast_to
from tvm_ext.frontend.relay.converters.moves import permute, reshape
from tvm_ext.frontend.relay.converters.slicing import sliced
from tvm_ext.frontend.relay.registry import OpCall, converts

_TAKE_MODES = ("clip", "wrap", "fast")
_REDUCTIONS = ("update", "add", "mul", "mean", "min", "max")


@converts("take")
def convert_take(call: OpCall) -> relax.Expr:
    """Convert a gather along one axis, of the flat tensor without one.

    An index out of range is moved to the nearest end ("clip", also "fast"), or counts on from the
    beginning ("wrap").
    """
    data, indices = call.tensor(0), call.tensor(1)
    mode = str(call.attr("mode", "clip"))
    if mode not in _TAKE_MODES:
        raise ModelError(f"mode is {mode!r}; it must be one of {', '.join(_TAKE_MODES)}")
    axis, batch = call.attr("axis"), int(call.attr("batch_dims", 0))
    if batch:
        return _taken_in_batches(call, data, indices, mode, int(axis or 0), batch)
    if axis is None:
        data = reshape(call.bb, data, (int(np.prod(shape_of(data), dtype="int64")),))
    axis = int(axis or 0) % len(shape_of(data))
    size = shape_of(data)[axis]
    known = constant(indices)
    if known is not None:
        known = known % size if mode == "wrap" else known.clip(0, size - 1)
        value = constant(data)
        if value is not None:
            return const(np.take(value, known.astype("int64"), axis))
        if known.ndim == 0:
            row = call.bb.emit(sliced(call, data, [axis], [slice(int(known), int(known) + 1)]))
            return relax.op.squeeze(row, [axis])
        indices = const(known)
    return relax.op.take(data, indices, axis, mode="wrap" if mode == "wrap" else "clip")


def _taken_in_batches(
    call: OpCall, data: relax.Expr, indices: relax.Expr, mode: str, axis: int, batch: int
) -> relax.Expr:
    """A gather whose first dimensions of data and indices go together, along a later axis.

    What stands between them and the axis comes before the indices, the rest behind.
    """
    shape, places = shape_of(data), shape_of(indices)
    batch = batch % len(places) if batch < 0 else batch
    axis %= len(shape)
    if batch > axis or shape[:batch] != places[:batch]:
        raise ModelError(
            f"batch_dims is {batch}; axis {axis} must not be one of them, and the shapes {shape} "
            f"and {places} must begin alike"
        )
    size = shape[axis]
    wide = call.cast(indices, "int64")
    if mode == "wrap":
        wide = call.emit(relax.op.floor_mod, wide, scalar(size, wide))
    else:
        wide = call.emit(relax.op.clip, wide, 0, size - 1)
    middle, rest = shape[batch:axis], shape[axis + 1 :]
    rows = permute(
        call.bb, data, [*range(batch), axis, *range(batch, axis), *range(axis + 1, len(shape))]
    )
    found = call.emit(relax.op.gather_nd, rows, call.emit(relax.op.expand_dims, wide, -1), batch)
    inner = len(places) - batch
    order = [
        *range(batch),
        *range(batch + inner, batch + inner + len(middle)),
        *range(batch, batch + inner),
        *range(batch + inner + len(middle), batch + inner + len(middle) + len(rest)),
    ]
    return permute(call.bb, found, order)


@converts("gather")
def convert_gather(call: OpCall) -> relax.Expr:
    """Convert a gather of single elements along one axis; negative indices count from the end."""
    data = call.tensor(0)
    axis = int(call.attr("axis", 0)) % len(shape_of(data))
    indices = _non_negative(call, call.tensor(1), shape_of(data)[axis])
    return relax.op.gather_elements(data, indices, axis)


@converts("gather_nd")
def convert_gather_nd(call: OpCall) -> relax.Expr:
    """Convert a gather by coordinates, (M, Y...) -> (Y..., rest of the data)."""
    indices = _coordinates_last(call, call.tensor(1))
    return relax.op.gather_nd(call.tensor(0), indices, int(call.attr("batch_dims", 0)))


@converts("adv_index")
def convert_adv_index(call: OpCall) -> relax.Expr:
    """Convert numpy's indexing by tensors, which broadcast, of the first dimensions."""
    data, *indices = call.tensors()
    return relax.op.index_tensor(data, indices)


@converts("scatter", "scatter_elements")
def convert_scatter_elements(call: OpCall) -> relax.Expr:
    """Convert single elements written, or combined, along one axis."""
    return _scattered(call, str(call.attr("reduction", "update")))


@converts("scatter_add")
def convert_scatter_add(call: OpCall) -> relax.Expr:
    """Convert single elements added along one axis."""
    return _scattered(call, "add")


@converts("scatter_nd")
def convert_scatter_nd(call: OpCall) -> relax.Expr:
    """Convert elements or slices written, or combined, by coordinates (M, Y...)."""
    mode = _reduction(str(call.attr("mode", "update")))
    indices = _coordinates_last(call, call.tensor(1))
    return relax.op.scatter_nd(call.tensor(0), indices, call.tensor(2), mode)


def _scattered(call: OpCall, reduction: str) -> relax.Expr:
    data = call.tensor(0)
    axis = int(call.attr("axis", 0)) % len(shape_of(data))
    indices = _non_negative(call, call.tensor(1), shape_of(data)[axis])
    return relax.op.scatter_elements(data, indices, call.tensor(2), axis, _reduction(reduction))


def _reduction(name: str) -> str:
    if name not in _REDUCTIONS:
        raise ModelError(f"the reduction is {name!r}; it must be one of {', '.join(_REDUCTIONS)}")
    return name


def _coordinates_last(call: OpCall, indices: relax.Expr) -> relax.Expr:
    """Coordinates (M, Y...) as (Y..., M), and int64, which Relax asks for."""
    last = permute(call.bb, indices, [*range(1, len(shape_of(indices))), 0])
    return cast_to(call, last, "int64")


def _non_negative(call: OpCall, indices: relax.Expr, size: int) -> relax.Expr:
    value = constant(indices)
    if value is not None:
        return const(np.where(value < 0, value + size, value).astype(value.dtype))
    negative = call.emit(relax.op.less, indices, scalar(0, indices))
    wrapped = call.emit(relax.op.add, indices, scalar(size, indices))
    return call.emit(relax.op.where, negative, wrapped, indices)
