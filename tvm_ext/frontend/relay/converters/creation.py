"""Tensors that only depend on shapes and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, constant, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.elementwise import MAX_GROWTH_BYTES
from tvm_ext.frontend.relay.converters.moves import reshape
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("zeros", "ones", "dyn.zeros", "dyn.ones")
def convert_zeros_or_ones(call: OpCall) -> relax.Expr:
    """Convert a tensor of a given shape."""
    value = np.asarray(call.name.endswith("ones"), call.dtype("dtype", "float32"))
    return filled(call.ints("shape", 0), value)


@converts("full", "dyn.full")
def convert_full(call: OpCall) -> relax.Expr:
    """Convert a tensor of one number, the first argument."""
    number = call.tensor(0)
    return _filled_with(call, call.ints("shape", 1), number, call.dtype("dtype", dtype_of(number)))


@converts("zeros_like", "ones_like")
def convert_zeros_or_ones_like(call: OpCall) -> relax.Expr:
    """Convert a tensor of another's shape and dtype."""
    like = call.tensor(0)
    return filled(shape_of(like), np.asarray(call.name == "ones_like", dtype_of(like)))


@converts("full_like")
def convert_full_like(call: OpCall) -> relax.Expr:
    """Convert a tensor of another's shape and dtype, of one number."""
    like = call.tensor(0)
    return _filled_with(call, shape_of(like), call.tensor(1), dtype_of(like))


@converts("arange")
def convert_arange(call: OpCall) -> relax.Expr:
    """Convert a sequence of numbers; start, stop and step are arguments."""
    start, stop, step = (
        call.known(i, what).item() for i, what in enumerate(("start", "stop", "step"))
    )
    count = max(int(np.ceil((stop - start) / step)), 0)
    if count == 0:
        raise ModelError(f"start {start}, stop {stop} and step {step} give no number")
    dtype = call.dtype("dtype", dtype_of(call.tensor(0)))
    return const((start + step * np.arange(count)).astype(dtype))


@converts("shape_of")
def convert_shape_of(call: OpCall) -> relax.Expr:
    """Convert to a constant: shapes are static."""
    return const(np.asarray(shape_of(call.tensor(0))), call.dtype("dtype", "int32"))


@converts("ndarray_size")
def convert_ndarray_size(call: OpCall) -> relax.Expr:
    """Convert to a constant: shapes are static."""
    return const(np.asarray(prod(shape_of(call.tensor(0)))), call.dtype("dtype", "int32"))


@converts("one_hot", "dyn.one_hot")
def convert_one_hot(call: OpCall) -> relax.Expr:
    """Convert indices to rows of "off" with one "on"; an index out of range gives none."""
    indices, on, off = (call.tensor(i) for i in range(3))
    (depth,) = call.ints("depth", 3)
    rank = len(shape_of(indices)) + 1
    axis = int(call.attr("axis", -1)) % rank
    classes = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(rank)])
    column = call.emit(relax.op.expand_dims, indices, axis)
    hit = call.emit(relax.op.equal, column, const(classes, dtype_of(indices)))
    dtype = call.dtype("dtype", dtype_of(on))
    return relax.op.where(hit, call.cast(on, dtype), call.cast(off, dtype))


@converts("meshgrid")
def convert_meshgrid(call: OpCall) -> list[relax.Expr]:
    """Convert vectors to the coordinates of a grid."""
    vectors = call.tensors()
    axes = list(range(len(vectors)))
    if str(call.attr("indexing", "ij")) == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    sizes = [0] * len(vectors)
    for vector, axis in zip(vectors, axes, strict=True):
        sizes[axis] = prod(shape_of(vector))
    results = []
    for vector, axis in zip(vectors, axes, strict=True):
        column = [size if i == axis else 1 for i, size in enumerate(sizes)]
        shaped = call.emit(relax.op.reshape, vector, tuple(column))
        results.append(call.emit(relax.op.broadcast_to, shaped, tuple(sizes)))
    return results


def _filled_with(call: OpCall, shape: Sequence[int], number: relax.Expr, dtype: str) -> relax.Expr:
    """A tensor of one number, which may be known at run time only."""
    value = constant(number)
    if value is not None:
        return filled(shape, value.reshape(()).astype(dtype))
    scalar = reshape(call.bb, call.cast(number, dtype), ())
    return relax.op.broadcast_to(scalar, tuple(shape))


def filled(shape: Sequence[int], value: np.ndarray) -> relax.Expr:
    """A tensor of one number: a constant where it's small, else an operator."""
    if prod(shape) * value.itemsize <= MAX_GROWTH_BYTES:
        return const(np.full(tuple(shape), value))
    return relax.op.full(tuple(shape), const(value), str(value.dtype))
