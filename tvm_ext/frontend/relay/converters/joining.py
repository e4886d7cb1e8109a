"""Tensors put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, constant, shape_of
from tvm_ext.frontend.relay.converters.moves import reshape
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("concatenate")
def convert_concatenate(call: OpCall) -> relax.Expr:
    """Convert a tuple of tensors to one, joined along an axis."""
    return joined(call, call.tensors(), int(call.attr("axis", 0)))


@converts("stack")
def convert_stack(call: OpCall) -> relax.Expr:
    """Convert a tuple of tensors to one, along a new axis."""
    tensors = call.tensors()
    shape = shape_of(tensors[0])
    axis = int(call.attr("axis", 0)) % (len(shape) + 1)
    wanted = (*shape[:axis], 1, *shape[axis:])
    return joined(call, [reshape(call.bb, tensor, wanted) for tensor in tensors], axis)


@converts("split")
def convert_split(call: OpCall) -> list[relax.Expr]:
    """Convert a tensor to its equal parts (a number), or to those between indices (a list)."""
    data, parts = call.tensor(0), call.required("indices_or_sections")
    axis = int(call.attr("axis", 0)) % len(shape_of(data))
    size = shape_of(data)[axis]
    if isinstance(parts, list | tuple):
        inner = [int(i) for i in parts]
    else:
        if parts < 1 or size % parts:
            raise ModelError(f"indices_or_sections is {parts}, which must divide {size}")
        inner = list(range(size // parts, size, size // parts))
    bounds = [0, *inner, size]
    if any(begin >= end for begin, end in pairwise(bounds)):
        raise ModelError(f"indices_or_sections is {inner}, for {size} elements")
    value = constant(data)
    if value is not None:
        return [const(part) for part in np.split(value, inner, axis)]
    if len(bounds) == 2:
        return [data]
    parted = call.emit(relax.op.split, data, inner, axis)
    return [relax.TupleGetItem(parted, i) for i in range(len(bounds) - 1)]


@converts("nn.fifo_buffer")
def convert_fifo_buffer(call: OpCall) -> relax.Expr:
    """Convert a buffer from which what comes in pushes the oldest out."""
    data, buffer = call.tensor(0), call.tensor(1)
    axis = int(call.attr("axis", 0)) % len(shape_of(data))
    both = joined(call, [buffer, data], axis)
    end = shape_of(both)[axis]
    return relax.op.strided_slice(both, [axis], [end - shape_of(buffer)[axis]], [end])


def joined(call: OpCall, tensors: Sequence[relax.Expr], axis: int) -> relax.Expr:
    """Tensors joined along an axis, at import where all are known."""
    axis %= len(shape_of(tensors[0]))
    if len(tensors) == 1:
        return tensors[0]
    values = [constant(tensor) for tensor in tensors]
    known = [value for value in values if value is not None]
    if len(known) == len(tensors):
        return const(np.concatenate(known, axis))
    return call.emit(relax.op.concat, list(tensors), axis)
