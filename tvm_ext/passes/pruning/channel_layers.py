"""Channels through convolutions, matrix products and batch norms."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.pruning.channel_labels import Axis, Labels
from tvm_ext.passes.pruning.channel_rule import Rule
from tvm_ext.passes.pruning.channel_shrink import Shrink
from tvm_ext.passes.pruning.channel_step import Step
from tvm_ext.passes.pruning.prunable import Prunable

_SPATIAL = "reads them as positions"


def _filters(step: Step, layer: Prunable, count: int) -> np.ndarray:
    """The ids of a layer's filters, the same for each use of its weights."""
    filters = step.channels.filters
    if layer.name not in filters:
        filters[layer.name] = step.channels.ids.fresh(count)
        if note := step.channels.notes.get(layer.name, ""):
            step.channels.ids.fix(filters[layer.name], f"{layer.name}: {note}")
    return filters[layer.name]


def _inputs(step: Step, layer: Prunable, axis: Axis) -> Axis:
    """What the filters of a layer read, the same for each use of its weights."""
    inputs = step.channels.inputs
    inputs[layer.name] = step.merge([inputs.get(layer.name, axis), axis])
    return inputs[layer.name]


def _follow_conv(step: Step) -> Labels:
    attrs, layer = step.call.attrs, step.channels.layers.get(step.var)
    axes, rank = step.axes(), len(step.shape())
    channel = str(attrs.data_layout).index("C")
    step.only(axes, [channel], _SPATIAL)
    read = axes[channel]
    if layer is None:
        step.fix([read, *step.axes(1)], "has no constant floating-point weights")
        return Labels.none(rank)
    groups = int(attrs.groups)
    filters = _filters(step, layer, len(layer.weights))
    if groups > 1 and layer.weights.shape[1] == 1:
        each = None if read is None else np.repeat(read, len(filters) // groups)
        step.merge([filters, each])
    elif groups > 1:
        step.channels.balanced.append((layer.name, filters.reshape(groups, -1)))
        if read is not None:
            step.channels.balanced.append((layer.name, read.reshape(groups, -1)))
    read = _inputs(step, layer, read)
    if groups == 1:
        weights, layout = step.axes(1), str(attrs.kernel_layout)
        step.merge([weights[layout.index("I")], read] if layer.weights.shape[1] > 1 else [])
        step.merge([weights[layout.index("O")], filters] if len(filters) > 1 else [])
    out: list[Axis] = [None] * rank
    out[str(attrs.out_layout or attrs.data_layout).index("C")] = filters
    return Labels(tuple(out))


def _shrink_conv(shrink: Shrink, step: Step, call: relax.Call) -> relax.Call:
    groups, layer = int(call.attrs.groups), step.channels.layers.get(step.var)
    new = shrink.call(step, call)
    if groups == 1 or layer is None:
        return new
    out, read = step.channels.filters[layer.name], step.channels.inputs[layer.name]
    if shrink.mask(out) is None and shrink.mask(read) is None:
        return new
    weights = shrink.once(layer.name, lambda: _grouped(shrink, layer, groups, out, read))
    if layer.weights.shape[1] == 1:
        groups = shrink.size(read, groups)
    return _with_groups(call, [new.args[0], weights], groups)


def _grouped(shrink: Shrink, layer: Prunable, groups: int, out: np.ndarray, read: Axis) -> Any:
    """The weights of a convolution in groups: each group loses channels of its own."""
    weights, kept = layer.weights, shrink.kept
    each = weights.reshape(groups, -1, *weights.shape[1:])
    inside = np.ones((groups, weights.shape[1]), bool)
    if read is not None and weights.shape[1] > 1:
        inside = kept[read].reshape(inside.shape)
    rows = kept[out].reshape(groups, -1)
    parts = [g[r][:, i] for g, r, i in zip(each, rows, inside, strict=True)]
    return df.constant(np.concatenate(parts).transpose(np.argsort(layer.axes)))


def _with_groups(call: relax.Call, args: list[Any], groups: int) -> relax.Call:
    """The convolution of other arguments with another number of groups."""
    a = call.attrs
    return getattr(relax.op.nn, df.op_name(call).rsplit(".", 1)[-1])(
        *args, strides=list(a.strides), padding=list(a.padding), dilation=list(a.dilation),
        groups=groups, data_layout=a.data_layout, kernel_layout=a.kernel_layout,
        out_layout=a.out_layout or None, out_dtype=a.out_dtype or None,
    )  # fmt: skip


def _follow_transposed(step: Step) -> Labels:
    """Its filters aren't pruned; what they read is followed, unless it's in groups."""
    attrs, axes = step.call.attrs, step.axes()
    channel = str(attrs.data_layout).index("C")
    step.only(axes, [channel], _SPATIAL)
    if int(attrs.groups) > 1:
        step.fix([axes[channel]], "is transposed and in groups")
    elif step.shape()[channel] > 1:
        step.merge([step.axes(1)[str(attrs.kernel_layout).index("I")], axes[channel]])
    return Labels.none(len(axes))


def _follow_matmul(step: Step) -> Labels:
    left, right = step.axes(0), step.axes(1)
    sizes = step.shape(0), step.shape(1)
    if len(right) < 2:
        step.fix([*left, *right], "multiplies with a vector")
        return Labels.none(len(df.shape_of(step.var)))
    layer = step.channels.layers.get(step.var)
    if sizes[0][-1] > 1:
        read = step.merge([left[-1], right[-2]])
        if layer is not None:
            _inputs(step, layer, read)
    columns = right[-1]
    if layer is not None:
        columns = _filters(step, layer, sizes[1][-1])
        if len(columns) > 1:
            step.merge([columns, right[-1]])
    batch: list[Axis] = []
    for i in range(max(len(left), len(right)), 2, -1):
        parts = [
            (axes[-i], shape[-i])
            for axes, shape in zip((left, right), sizes, strict=True)
            if len(shape) >= i
        ]
        batch.append(step.merge([axis for axis, n in parts if n > 1]))
    return Labels((*batch, *left[-2:-1], columns))


def _follow_batch_norm(step: Step) -> tuple[Labels, ...]:
    axes, channel = step.axes(), int(step.call.attrs.axis)
    if step.shape()[channel] > 1:
        axes[channel] = step.merge([axes[channel], *(step.axes(k)[0] for k in range(1, 5))])
    return Labels(tuple(axes)), Labels((axes[channel],)), Labels((axes[channel],))


RULES = {
    **{f"relax.nn.conv{n}d": Rule(_follow_conv, _shrink_conv) for n in (1, 2, 3)},
    **{f"relax.nn.conv{n}d_transpose": Rule(_follow_transposed) for n in (1, 2, 3)},
    "relax.matmul": Rule(_follow_matmul),
    "relax.nn.batch_norm": Rule(_follow_batch_norm),
}
