"""Gather, Slice, OneHot, EyeLike and Tile; what is known at import is resolved there."""

from __future__ import annotations

import numpy as np
import onnx
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import (
    const,
    constant,
    dtype_of,
    optional,
    required_constant,
    scalar,
    shape_of,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


@register_onnx_converter("Gather")
def convert_gather(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Gather: one known index is a slice, anything else ``relax.take``.

    Negative indices count from the end. Known indices are checked here; at run time an index out
    of range reads the last element, never memory behind it.
    """
    data, indices = inputs
    rank = len(shape_of(data))
    axis = attrs.get("axis", 0) % rank
    size = shape_of(data)[axis]
    value = constant(indices)
    if value is not None and ((value < -size) | (value >= size)).any():
        raise ModelError(f"indices {value.tolist()} exceed axis {axis}, which has {size} elements")
    if value is not None and value.ndim == 0:
        index = int(value) % size
        row = bb.emit(relax.op.strided_slice(data, [axis], [index], [index + 1]))
        return relax.op.squeeze(row, [axis])
    return relax.op.take(data, _non_negative(bb, indices, size), axis, mode="clip")


@register_onnx_converter("Slice")
def convert_slice(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Slice with known bounds to ``relax.strided_slice``."""
    shape = shape_of(inputs[0])
    if node.opset < 10:
        starts, ends, axes, steps = attrs["starts"], attrs["ends"], attrs.get("axes"), None
    else:
        starts = required_constant(inputs[1], "starts").tolist()
        ends = required_constant(inputs[2], "ends").tolist()
        axes, steps = (
            None if expr is None else required_constant(expr, what).tolist()
            for expr, what in ((optional(inputs, 3), "axes"), (optional(inputs, 4), "steps"))
        )
    axes = [a % len(shape) for a in (range(len(starts)) if axes is None else axes)]
    steps = [1] * len(starts) if steps is None else steps
    bounds = [
        slice(start, end, step).indices(shape[axis])
        for start, end, step, axis in zip(starts, ends, steps, axes, strict=True)
    ]
    return relax.op.strided_slice(
        inputs[0],
        axes,
        [begin for begin, _, _ in bounds],
        # Going backwards, "before the first" must not look like "the last".
        [end if end >= 0 else -shape[a] - 1 for (_, end, _), a in zip(bounds, axes, strict=True)],
        steps,
    )


@register_onnx_converter("OneHot")
def convert_one_hot(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert OneHot; an index outside the depth gives a row of "off"."""
    depth = int(required_constant(inputs[1], "depth").item())
    off, on = required_constant(inputs[2], "values")
    indices = inputs[0]
    if not dtype_of(indices).startswith("int"):
        indices = bb.emit(relax.op.astype(indices, "int64"))
    indices = _non_negative(bb, indices, depth)
    rank = len(shape_of(indices)) + 1
    axis = attrs.get("axis", -1) % rank
    classes = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(rank)])
    column = bb.emit(relax.op.expand_dims(indices, axis))
    hit = bb.emit(relax.op.equal(column, const(classes, dtype_of(indices))))
    return relax.op.where(hit, const(np.asarray(on)), const(np.asarray(off)))


@register_onnx_converter("EyeLike")
def convert_eye_like(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert EyeLike: only the input's shape matters, so it's a constant."""
    dtype = dtype_of(inputs[0])
    if "dtype" in attrs:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(attrs["dtype"])
    rows, columns = shape_of(inputs[0])
    return const(np.eye(rows, columns, attrs.get("k", 0), dtype))


@register_onnx_converter("Tile")
def convert_tile(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Tile with known repeats to ``relax.tile``."""
    return relax.op.tile(inputs[0], required_constant(inputs[1], "repeats").tolist())


def _non_negative(bb: relax.BlockBuilder, indices: relax.Expr, size: int) -> relax.Expr:
    value = constant(indices)
    if value is not None:
        return const(np.where(value < 0, value + size, value).astype(value.dtype))
    negative = bb.emit(relax.op.less(indices, scalar(0, indices)))
    wrapped = bb.emit(relax.op.add(indices, scalar(size, indices)))
    return bb.emit(relax.op.where(negative, wrapped, indices))
