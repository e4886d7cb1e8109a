"""Regular parts of tensors, and regular repetitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, constant, scalar, shape_of
from tvm_ext.frontend.relay.converters.moves import along_axis, reshape
from tvm_ext.frontend.relay.registry import OpCall, converts

_MODES = ("end", "size")


@converts("strided_slice", "dyn.strided_slice")
def convert_strided_slice(call: OpCall) -> relax.Expr:
    """Convert a slice; in the mode "size" `end` has lengths, of which -1 is all that is left."""
    data = call.tensor(0)
    shape = shape_of(data)
    begins, ends = _bounds(call, "begin", 1), _bounds(call, "end", 2)
    mode = str(call.attr("slice_mode", "end"))
    if mode not in _MODES:
        raise ModelError(f"slice_mode is {mode!r}; it must be one of {', '.join(_MODES)}")
    dynamic = call.name.startswith("dyn.") and len(call.args) > 3
    steps = call.ints("strides", 3) if dynamic else list(call.attr("strides") or [1])
    if mode == "size":
        ends = _lengths_to_ends(begins, ends)
        steps = [1]
    steps = [int(s) for s in (steps * len(begins) if len(steps) == 1 else steps)]
    axes = call.attr("axes")
    axes = list(range(len(begins))) if axes is None else [int(a) % len(shape) for a in axes]
    # Relay takes what lies behind a short list of strides or ends as whole.
    steps += [1] * (len(begins) - len(steps))
    ends += [None] * (len(begins) - len(ends))
    slices = [slice(begin, end, step) for begin, end, step in zip(begins, ends, steps, strict=True)]
    return sliced(call, data, axes, slices)


@converts("slice_like")
def convert_slice_like(call: OpCall) -> relax.Expr:
    """Convert to the first elements, as many as another tensor has."""
    data, like = call.tensor(0), shape_of(call.tensor(1))
    rank = len(shape_of(data))
    axes = [int(a) % rank for a in call.attr("axes") or range(min(rank, len(like)))]
    return sliced(call, data, axes, [slice(0, like[axis]) for axis in axes])


@converts("reverse")
def convert_reverse(call: OpCall) -> relax.Expr:
    """Convert to the opposite order along one axis."""
    return relax.op.flip(call.tensor(0), int(call.attr("axis", 0)))


@converts("reverse_sequence")
def convert_reverse_sequence(call: OpCall) -> relax.Expr:
    """Convert to the opposite order of each row's first elements, as many as its length says.

    At run time too: position p of a row of length n reads ``n - 1 - p`` where p < n, else p.
    """
    data, lengths = call.tensor(0), call.tensor(1)
    shape = shape_of(data)
    axis = int(call.attr("seq_axis", 1)) % len(shape)
    batch = int(call.attr("batch_axis", 0)) % len(shape)
    column = [size if i == axis else 1 for i, size in enumerate(shape)]
    positions = const(np.arange(shape[axis]).reshape(column), "int64")
    limits = call.cast(along_axis(call.bb, lengths, batch, len(shape)), "int64")
    limits = reshape(call.bb, limits, [n if i == batch else 1 for i, n in enumerate(shape)])
    last = call.emit(relax.op.subtract, limits, scalar(1, limits))
    turned = call.emit(relax.op.subtract, last, positions)
    inside = call.emit(relax.op.greater_equal, turned, scalar(0, turned))
    source = call.emit(relax.op.where, inside, turned, positions)
    source = call.emit(relax.op.broadcast_to, source, shape)
    return relax.op.gather_elements(data, source, axis)


@converts("repeat")
def convert_repeat(call: OpCall) -> relax.Expr:
    """Convert to each element several times in a row."""
    axis = call.attr("axis")
    return relax.op.repeat(call.tensor(0), int(call.required("repeats")), axis)


@converts("tile", "dyn.tile")
def convert_tile(call: OpCall) -> relax.Expr:
    """Convert to the tensor several times in a row."""
    return relax.op.tile(call.tensor(0), call.ints("reps", 1))


@converts("sequence_mask")
def convert_sequence_mask(call: OpCall) -> relax.Expr:
    """Convert to the tensor with a number behind the valid length of each row."""
    data, lengths = call.tensor(0), call.tensor(1)
    shape = shape_of(data)
    axis = int(call.attr("axis", 0)) % len(shape)
    column = [size if i == axis else 1 for i, size in enumerate(shape)]
    row = [size if i == 1 - axis else 1 for i, size in enumerate(shape)]
    positions = const(np.arange(shape[axis]).reshape(column), "int64")
    limits = call.cast(reshape(call.bb, lengths, row), "int64")
    valid = call.emit(relax.op.less, positions, limits)
    return relax.op.where(valid, data, scalar(call.attr("mask_value", 0), data))


def sliced(
    call: OpCall, data: relax.Expr, axes: Sequence[int], slices: Sequence[slice]
) -> relax.Expr:
    """Python's slices of some axes."""
    shape = shape_of(data)
    value = constant(data)
    if value is not None:
        index = [slice(None)] * len(shape)
        for axis, part in zip(axes, slices, strict=True):
            index[axis] = part
        return const(value[tuple(index)])
    bounds = [part.indices(shape[axis]) for axis, part in zip(axes, slices, strict=True)]
    kept = [(axis, b) for axis, b in zip(axes, bounds, strict=True) if b != (0, shape[axis], 1)]
    if not kept:
        return data
    return relax.op.strided_slice(
        data,
        [axis for axis, _ in kept],
        [begin for _, (begin, _, _) in kept],
        # Going backwards, "before the first" must not look like "the last".
        [end if end >= 0 else -shape[axis] - 1 for axis, (_, end, _) in kept],
        [step for _, (_, _, step) in kept],
    )


def _bounds(call: OpCall, name: str, index: int) -> list[int | None]:
    """Bounds, of which one may be open."""
    if call.name.startswith("dyn."):
        return list(call.ints(name, index))
    return [None if b is None else int(b) for b in call.required(name)]


def _lengths_to_ends(begins: list[int | None], sizes: list[int | None]) -> list[int | None]:
    ends: list[int | None] = []
    for begin, size in zip(begins, sizes, strict=True):
        end = None if size is None or size < 0 else (begin or 0) + size
        # A negative begin counts from the end, and so does its end, until it is the end.
        ends.append(None if begin is not None and begin < 0 and end == 0 else end)
    return ends
