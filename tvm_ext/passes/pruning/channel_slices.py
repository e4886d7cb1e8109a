"""Channels through operators that join and cut axes: concatenations, splits, slices, padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from tvm import relax, tirx

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import concat_axis, slice_ranges
from tvm_ext.passes.pruning.channel_labels import Axis, Labels
from tvm_ext.passes.pruning.channel_rule import Rule
from tvm_ext.passes.pruning.channel_shrink import Shrink, take
from tvm_ext.passes.pruning.channel_step import Step


def _follow_concat(step: Step) -> Labels:
    axis, shape = concat_axis(step.call), df.shape_of(step.var)
    parts = [step.axes(k) for k in range(len(df.tensors(step.call)))]
    out: list[Axis] = []
    for place, size in enumerate(shape):
        met = [part[place] for part in parts]
        if place != axis:
            out.append(step.merge(met) if size > 1 else None)
        elif all(part is None for part in met):
            out.append(None)
        else:
            sizes = [step.shape(k)[axis] for k in range(len(parts))]
            known = [_or_fixed(step, *part) for part in zip(met, sizes, strict=True)]
            out.append(np.concatenate(known))
    return Labels(tuple(out))


def _or_fixed(step: Step, axis: Axis, size: int) -> np.ndarray:
    """The channels of a part; one without any gets some that stay."""
    if axis is not None:
        return axis
    fresh = step.channels.ids.fresh(size)
    step.fix([fresh], "joins them to channels that can go")
    return fresh


def _sections(step: Step) -> tuple[int, list[range]]:
    """The axis of a split and what each part has of it."""
    shape, sections = step.shape(), step.call.attrs.indices_or_sections
    axis = int(step.call.attrs.axis) % len(shape)
    extent = shape[axis]
    if isinstance(sections, (int, tirx.IntImm)):
        each = -(-extent // int(sections))
        inner = list(range(each, extent, each))
    else:
        inner = [int(i) for i in sections]
    return axis, [range(*pair) for pair in pairwise([0, *inner, extent])]


def _follow_split(step: Step) -> tuple[Labels, ...]:
    axis, parts = _sections(step)
    axes = step.axes()
    return tuple(Labels(_picked(axes, axis, part)) for part in parts)


def _shrink_split(shrink: Shrink, step: Step, call: relax.Call) -> Any:
    axis, parts = _sections(step)
    new, ids = shrink.call(step, call), step.axes()[axis]
    if shrink.mask(ids) is None:
        return new
    sizes = [shrink.size(ids[part], len(part)) for part in parts]
    return relax.op.split(new.args[0], np.cumsum(sizes)[:-1].tolist(), axis)


def _follow_slice(step: Step) -> Labels:
    ranges, axes = slice_ranges(step.call), step.axes()
    if ranges is None:
        step.fix(axes, "has computed bounds")
        return Labels.none(len(axes))
    for axis, kept in ranges:
        axes = list(_picked(axes, axis, kept))
    return Labels(tuple(axes))


def _shrink_slice(shrink: Shrink, step: Step, call: relax.Call) -> Any:
    new, axes = shrink.call(step, call), step.axes()
    ranges = slice_ranges(step.call)
    if ranges is None or all(shrink.mask(axes[axis]) is None for axis, _ in ranges):
        return new
    data = new.args[0]
    for axis, kept in ranges:
        mask = shrink.mask(axes[axis])
        if mask is not None:
            data = _cut(data, axis, shrink.places(mask, np.array(kept)))
        elif kept != range(step.shape()[axis]):
            # An end before the first element, where a slice goes backwards to it.
            end = kept.stop if kept.stop >= 0 else -(1 << 31)
            data = relax.op.strided_slice(data, [axis], [kept.start], [end], [kept.step])
    return data


def _cut(data: Any, axis: int, places: np.ndarray) -> Any:
    """Some indices of an axis: a slice where they are one run."""
    begin, end = int(places[0]), int(places[0]) + len(places)
    if np.array_equal(places, np.arange(begin, end)):
        return relax.op.strided_slice(data, [axis], [begin], [end])
    return take(data, places, axis)


def _follow_flip(step: Step) -> Labels:
    axes = step.axes()
    axis = int(step.call.attrs.axis) % len(axes)
    return Labels(_picked(axes, axis, range(step.shape()[axis])[::-1]))


def _follow_take(step: Step) -> Labels:
    """A gather along an axis, at constant places if the axis has channels."""
    axes, indices = step.axes(0), df.value_of(step.call.args[1])
    axis = step.call.attrs.axis
    shape = df.shape_of(step.var)
    if axis is None:
        step.fix([*axes, *step.axes(1)], "reads all elements as one axis")
        return Labels.none(len(shape))
    axis = int(axis) % len(axes)
    rank = len(step.shape(1))
    before, after = axes[:axis], axes[axis + 1 :]
    if axes[axis] is None or indices is None or rank != 1 or _outside(indices, step.shape()[axis]):
        step.fix([axes[axis], *step.axes(1)], "gathers some of them")
        return Labels((*before, *[None] * rank, *after))
    return Labels((*before, axes[axis][indices], *after))


def _outside(indices: np.ndarray, extent: int) -> bool:
    return bool(((indices < 0) | (indices >= extent)).any())


def _shrink_take(shrink: Shrink, step: Step, call: relax.Call) -> Any:
    new = shrink.call(step, call)
    axis = step.call.attrs.axis
    axes = step.axes(0)
    mask = None if axis is None else shrink.mask(axes[int(axis) % len(axes)])
    if mask is None:
        return new
    return take(new.args[0], shrink.places(mask, df.value_of(step.call.args[1])), int(axis))


def _follow_pad(step: Step) -> Labels:
    """Padded channels, as a shortcut without weights has them, can go like others."""
    axes, attrs = step.axes(), step.call.attrs
    out: list[Axis] = []
    for axis, (begin, end) in zip(axes, _widths(step), strict=True):
        if axis is None or begin == end == 0:
            out.append(axis)
        elif attrs.pad_mode != "constant" or min(begin, end) < 0:
            step.fix([axis], "pads them with one another, or crops them")
            out.append(None)
        else:
            fresh = step.channels.ids.fresh
            out.append(np.concatenate([fresh(begin), axis, fresh(end)]))
    return Labels(tuple(out))


def _shrink_pad(shrink: Shrink, step: Step, call: relax.Call) -> Any:
    new, attrs = shrink.call(step, call), step.call.attrs
    widths: list[int] = []
    for axis, (begin, end) in zip(step.result().axes, _widths(step), strict=True):
        mask = shrink.mask(axis)
        if mask is not None:
            begin, end = int(mask[:begin].sum()), int(mask[len(mask) - end :].sum())
        widths += [begin, end]
    return relax.op.nn.pad(new.args[0], widths, attrs.pad_mode, attrs.pad_value)


def _widths(step: Step) -> list[tuple[int, int]]:
    flat = [int(w) for w in step.call.attrs.pad_width]
    return list(zip(flat[::2], flat[1::2], strict=True))


def _picked(axes: Sequence[Axis], axis: int, places: Sequence[int]) -> tuple[Axis, ...]:
    ids = axes[axis]
    chosen = None if ids is None else ids[np.array(places, int)]
    return (*axes[:axis], chosen, *axes[axis + 1 :])


RULES = {
    "relax.concat": Rule(_follow_concat),
    "relax.split": Rule(_follow_split, _shrink_split),
    "relax.strided_slice": Rule(_follow_slice, _shrink_slice),
    "relax.flip": Rule(_follow_flip),
    "relax.take": Rule(_follow_take, _shrink_take),
    "relax.nn.pad": Rule(_follow_pad, _shrink_pad),
}
