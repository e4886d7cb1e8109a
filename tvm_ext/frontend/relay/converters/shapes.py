"""Operators that keep the elements and their order, and transposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, constant, shape_of
from tvm_ext.frontend.relay.converters.elementwise import MAX_GROWTH_BYTES
from tvm_ext.frontend.relay.converters.moves import permute, relayout, reshape
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("reshape", "dyn.reshape")
def convert_reshape(call: OpCall) -> relax.Expr:
    """Convert a reshape with Relay's codes."""
    data = call.tensor(0)
    codes = call.ints("newshape", 1)
    return reshape(call.bb, data, reshaped(shape_of(data), codes, bool(call.attr("allowzero", 0))))


@converts("contrib_reverse_reshape")
def convert_reverse_reshape(call: OpCall) -> relax.Expr:
    """Convert a reshape whose codes are read from the right."""
    data = call.tensor(0)
    codes = call.ints("newshape", 1)
    return reshape(call.bb, data, reshaped(shape_of(data)[::-1], codes[::-1])[::-1])


@converts("reshape_like")
def convert_reshape_like(call: OpCall) -> relax.Expr:
    """Convert a reshape of some dimensions to some of another tensor's."""
    data, (left, right) = call.tensor(0), (shape_of(call.tensor(i)) for i in range(2))
    begin, end = int(call.attr("lhs_begin", 0)), call.attr("lhs_end")
    middle = right[slice(int(call.attr("rhs_begin", 0)), call.attr("rhs_end"))]
    begin, end, _ = slice(begin, end).indices(len(left))
    return reshape(call.bb, data, (*left[:begin], *middle, *left[end:]))


@converts("expand_dims")
def convert_expand_dims(call: OpCall) -> relax.Expr:
    """Convert to a tensor with more dimensions of one element, before `axis`."""
    data = call.tensor(0)
    shape, more = shape_of(data), int(call.attr("num_newaxis", 1))
    axis = int(call.required("axis"))
    axis = axis + len(shape) + 1 if axis < 0 else axis
    return reshape(call.bb, data, (*shape[:axis], *[1] * more, *shape[axis:]))


@converts("dyn.expand_dims")
def convert_dynamic_expand_dims(call: OpCall) -> relax.Expr:
    """Convert `convert_expand_dims` with the axis as an argument."""
    attrs = {**call.attrs, "axis": int(call.known(1, "axis").item())}
    return convert_expand_dims(replace(call, attrs=attrs))


@converts("squeeze", "dyn.squeeze")
def convert_squeeze(call: OpCall) -> relax.Expr:
    """Convert to a tensor without some dimensions of one element."""
    data = call.tensor(0)
    shape = shape_of(data)
    if call.name == "squeeze" and call.attr("axis") is None:
        axes = [i for i, size in enumerate(shape) if size == 1]
    else:
        axes = [axis % len(shape) for axis in call.ints("axis", 1)]
    if any(shape[axis] != 1 for axis in axes):
        raise ModelError(f"axis is {axes}; the shape {shape} has more than one element there")
    return reshape(call.bb, data, [size for i, size in enumerate(shape) if i not in axes])


@converts("transpose")
def convert_transpose(call: OpCall) -> relax.Expr:
    """Convert a transpose; without axes the order is turned round."""
    data = call.tensor(0)
    rank = len(shape_of(data))
    axes = call.attr("axes") or list(range(rank))[::-1]
    return permute(call.bb, data, [int(axis) % rank for axis in axes])


@converts("layout_transform")
def convert_layout_transform(call: OpCall) -> relax.Expr:
    """Convert from one layout to another."""
    source, target = str(call.required("src_layout")), str(call.required("dst_layout"))
    return relayout(call.bb, call.tensor(0), source, target)


@converts("broadcast_to", "dyn.broadcast_to")
def convert_broadcast_to(call: OpCall) -> relax.Expr:
    """Convert the repetition of dimensions of one element."""
    return broadcast(call, call.tensor(0), call.ints("shape", 1))


@converts("broadcast_to_like")
def convert_broadcast_to_like(call: OpCall) -> relax.Expr:
    """Convert the repetition of dimensions to another tensor's shape."""
    return broadcast(call, call.tensor(0), shape_of(call.tensor(1)))


@converts("collapse_sum_like", "collapse_sum_to")
def convert_collapse_sum(call: OpCall) -> relax.Expr:
    """Convert the sum over what broadcasting to the first shape from the second repeats."""
    data = call.tensor(0)
    shape = shape_of(data)
    if call.name.endswith("like"):
        wanted = shape_of(call.tensor(1))
    else:
        wanted = tuple(int(n) for n in call.known(1, "shape"))
    padded = (1,) * (len(shape) - len(wanted)) + wanted
    pairs = enumerate(zip(shape, padded, strict=True))
    axes = [i for i, (n, m) in pairs if n != m]
    summed = call.emit(relax.op.sum, data, axes, keepdims=True) if axes else data
    return reshape(call.bb, summed, wanted)


def broadcast(call: OpCall, data: relax.Expr, shape: Sequence[int]) -> relax.Expr:
    """A tensor in a larger shape."""
    if shape_of(data) == tuple(shape):
        return data
    value = constant(data)
    if value is not None and prod(shape) * value.itemsize <= value.nbytes + MAX_GROWTH_BYTES:
        return const(np.broadcast_to(value, tuple(shape)))
    return call.emit(relax.op.broadcast_to, data, tuple(shape))


def reshaped(shape: Sequence[int], codes: Sequence[int], allow_zero: bool = False) -> list[int]:
    """Return the shape that Relay's codes stand for.

    Parameters
    ----------
    shape : sequence of int
        The tensor's.
    codes : sequence of int
        A positive number is itself. 0 copies a dimension, -1 is what is left over, -2 copies all
        the following dimensions, -3 joins two, -4 splits one into the next two numbers, of which
        one may be -1.
    allow_zero : bool
        0 is itself.

    Raises
    ------
    ModelError
        The codes don't fit the shape.
    """
    wrong = ModelError(f"newshape {list(codes)} doesn't fit the shape {tuple(shape)}")
    result: list[int] = []
    source, position, infer = 0, 0, -1

    def take(count: int) -> list[int]:
        nonlocal source
        source += count
        if source > len(shape):
            raise wrong
        return list(shape[source - count : source])

    while position < len(codes):
        code = codes[position]
        position += 1
        if code > 0 or (code == 0 and allow_zero):
            result.append(code)
            # What a number replaces isn't copied by the codes that follow.
            source = min(source + 1, len(shape))
        elif code == 0:
            result += take(1)
        elif code == -1:
            if infer >= 0:
                raise wrong
            infer = len(result)
            result.append(1)
            source = min(source + 1, len(shape))
        elif code == -2:
            result += take(len(shape) - source)
        elif code == -3:
            result.append(prod(take(2)))
        elif code == -4 and position + 2 <= len(codes):
            (whole,) = take(1)
            a, b = codes[position : position + 2]
            position += 2
            if a == -1 and b > 0:
                a = whole // b
            elif b == -1 and a > 0:
                b = whole // a
            if a * b != whole:
                raise wrong
            result += [a, b]
        else:
            raise wrong
    if infer >= 0:
        rest = prod(result)
        if rest == 0 or prod(shape) % rest:
            raise wrong
        result[infer] = prod(shape) // rest
    if prod(result) != prod(shape):
        raise wrong
    return result
