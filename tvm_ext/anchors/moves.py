"""Readers of operators that only move elements."""

from __future__ import annotations

from tvm import relax

from tvm_ext.anchors.anchor import Anchor, Shape, ints
from tvm_ext.passes import dataflow as df
from tvm_ext.schedules.workload import ConcatWorkload, TransposeWorkload, ViewWorkload


def concat(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Concatenations of values that are all computed."""
    parts = call.args[0]
    if not isinstance(parts, relax.Tuple):
        return "the parts are not listed"
    if any(df.value_of(f) is not None for f in parts.fields):
        return "a part is constant"
    shapes = tuple(df.shape_of(f) for f in parts.fields)
    axis = int(call.attrs.axis) % len(out_shape)
    base = ConcatWorkload(shapes, axis, df.dtype_of(parts.fields[0]))
    return Anchor(base, tuple(parts.fields))


def view(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """The same elements under another shape."""
    data = call.args[0]
    if df.value_of(data) is not None:
        return "the tensor is constant"
    return Anchor(ViewWorkload(df.shape_of(data), out_shape, df.dtype_of(data)), (data,))


def permute(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Transpositions; a view where only dimensions of one element move."""
    data = call.args[0]
    shape = df.shape_of(data)
    axes = call.attrs.axes
    order = list(reversed(range(len(shape)))) if axes is None else list(ints(axes))
    kept = [a for a in order if shape[a] != 1]
    if kept == sorted(kept):
        return view(call, out_shape)
    if df.value_of(data) is not None:
        return "the tensor is constant"
    return Anchor(TransposeWorkload(shape, tuple(order), df.dtype_of(data)), (data,))
