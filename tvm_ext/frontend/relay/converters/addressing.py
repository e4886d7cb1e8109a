"""Positions computed from values, and parts of tensors that are overwritten."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, scalar, shape_of
from tvm_ext.frontend.relay.converters.moves import reshape
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("unravel_index")
def convert_unravel_index(call: OpCall) -> relax.Expr:
    """Convert positions in a flat tensor to coordinates, (dimensions, ...)."""
    flat = call.tensor(0)
    rows = []
    for size in reversed([int(n) for n in call.known(1, "shape")]):
        rows.append(call.emit(relax.op.floor_mod, flat, scalar(size, flat)))
        flat = call.emit(relax.op.floor_divide, flat, scalar(size, flat))
    return relax.op.stack(rows[::-1], 0)


@converts("invert_permutation")
def convert_invert_permutation(call: OpCall) -> relax.Expr:
    """Convert a permutation to the one that undoes it."""
    data = call.tensor(0)
    return call.cast(call.emit(relax.op.argsort, data, 0, False, "int32"), dtype_of(data))


@converts("searchsorted")
def convert_searchsorted(call: OpCall) -> relax.Expr:
    """Convert to how many elements of a sorted row are below each value (or equal to it)."""
    rows, values = call.tensor(0), call.tensor(1)
    if len(shape_of(rows)) not in (1, len(shape_of(values))):
        raise ModelError(
            f"sorted_sequence has the shape {shape_of(rows)}, values {shape_of(values)}; it must "
            "have one dimension or as many"
        )
    before = relax.op.less_equal if call.attr("right", False) else relax.op.less
    if len(shape_of(rows)) > 1:
        rows = call.emit(relax.op.expand_dims, rows, -2)
    counted = call.emit(before, rows, call.emit(relax.op.expand_dims, values, -1))
    counted = call.emit(relax.op.astype, counted, call.dtype("dtype", "int32"))
    return relax.op.sum(counted, [-1])


@converts("strided_set")
def convert_strided_set(call: OpCall) -> relax.Expr:
    """Convert a tensor with other values in a slice of it."""
    data, values = call.tensor(0), call.tensor(1)
    shape = shape_of(data)
    begins, ends, steps = (
        [int(n) for n in call.known(i, what)]
        for i, what in enumerate(("begin", "end", "strides"), start=2)
    )
    steps += [1] * (len(begins) - len(steps))
    flat = np.arange(int(np.prod(shape, dtype="int64"))).reshape(shape)
    at = tuple(slice(*bounds) for bounds in zip(begins, ends, steps, strict=True))
    if flat[at].shape != shape_of(values):
        raise ModelError(
            f"the values have the shape {shape_of(values)}, the slice {flat[at].shape}"
        )
    rows = reshape(call.bb, data, (flat.size,))
    places = const(flat[at].reshape(-1, 1), "int64")
    updates = reshape(call.bb, values, (flat[at].size,))
    written = call.emit(relax.op.scatter_nd, rows, places, updates, "update")
    return reshape(call.bb, written, shape)


@converts("matrix_set_diag")
def convert_matrix_set_diag(call: OpCall) -> relax.Expr:
    """Convert matrices with other values on their diagonals ``k1`` to ``k2``.

    Several diagonals are the rows of the second argument, the highest first, each at the left or
    the right of its row.
    """
    data, diagonal = call.tensor(0), call.tensor(1)
    *outer, height, width = shape_of(data)
    low, high = int(call.attr("k1", 0)), int(call.attr("k2", 0))
    length = shape_of(diagonal)[-1]
    row, column = np.indices((height, width))
    which = column - row
    inside = (which >= low) & (which <= high)
    position = np.where(which >= 0, row, column)
    if low != high:
        above = np.minimum(width - which, height)
        below = np.minimum(width, height + which)
        right = np.where(
            which >= 0,
            bool(call.attr("super_diag_right_align", True)),
            bool(call.attr("sub_diag_right_align", False)),
        )
        position = position + np.where(right, length - np.where(which >= 0, above, below), 0)
        position = position + (high - which) * length
    position = np.where(inside, position, 0).reshape(-1)
    flat = reshape(call.bb, diagonal, (*outer, (high - low + 1) * length))
    taken = call.emit(relax.op.take, flat, const(position, "int64"), len(outer), mode="clip")
    taken = reshape(call.bb, taken, shape_of(data))
    return relax.op.where(const(inside), taken, data)
