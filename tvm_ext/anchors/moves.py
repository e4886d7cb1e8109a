"""Readers of operators that only move elements."""

from __future__ import annotations

from tvm import relax

from tvm_ext.anchors.anchor import Anchor, Shape
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import permutation
from tvm_ext.passes.fusion.moves import slices_of
from tvm_ext.schedules.slice import SliceWorkload
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
    order = permutation(call)
    kept = [a for a in order if shape[a] != 1]
    if kept == sorted(kept):
        return view(call, out_shape)
    if df.value_of(data) is not None:
        return "the tensor is constant"
    return Anchor(TransposeWorkload(shape, order, df.dtype_of(data)), (data,))


def strided_slice(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """A part of one axis, without gaps."""
    data = call.args[0]
    shape = df.shape_of(data)
    if df.value_of(data) is not None:
        return "the tensor is constant"
    moves = slices_of(call)
    if moves is None:
        return "its bounds are computed"
    if any(step != 1 for *_, step in moves):
        return "it has gaps, or goes backwards"
    cut = [(axis, begin, begin + count) for _, axis, begin, count, _ in moves]
    if len(cut) > 1:
        return "it cuts several axes"
    axis, begin, end = cut[0] if cut else (0, 0, shape[0])
    return Anchor(SliceWorkload(shape, axis, begin, end, df.dtype_of(data)), (data,))
