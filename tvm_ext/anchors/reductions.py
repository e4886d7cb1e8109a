"""Readers of pools, means and normalisations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.anchors.anchor import Anchor, Reader, Shape, ints, not_float32, window
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import reduced_axes, reduces_positions
from tvm_ext.passes.fusion.channel_window import channel_window
from tvm_ext.schedules.channel_pool import ChannelPoolWorkload
from tvm_ext.schedules.workload import NormalizeWorkload, PoolWorkload


def pool(kind: str) -> Reader:
    """A reader of pools; `kind` is ``"max"`` or ``"avg"``."""

    def read(call: relax.Call, out_shape: Shape) -> Anchor | str:
        data = call.args[0]
        if reason := not_float32(data):
            return reason
        if (over_channels := channel_window(call)) is not None:
            return Anchor(ChannelPoolWorkload(out_shape, *over_channels), (data,))
        if not str(call.attrs.layout).startswith("NC"):
            return f"layout {call.attrs.layout}; only NC*, or averages along the second dimension"
        strides, before, after, dilation = window(call.attrs, len(out_shape) - 2)
        base = PoolWorkload(
            kind=kind, shape=df.shape_of(data), kernel=ints(call.attrs.pool_size),
            strides=strides, pad_before=before, pad_after=after, dilation=dilation,
            out_shape=out_shape, count_include_pad=bool(call.attrs.count_include_pad),
        )  # fmt: skip
        return Anchor(base, (data,))

    return read


def global_pool(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Adaptive averages, where they are over all positions."""
    data = call.args[0]
    if reason := not_float32(data):
        return reason
    if any(d != 1 for d in out_shape[2:]):
        return f"adaptive pooling to {out_shape[2:]}; only to single positions"
    return _whole(data, out_shape)


def mean(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Means, where they are over all positions."""
    data = call.args[0]
    if reason := not_float32(data):
        return reason
    if not reduces_positions(call):
        axes, rank = list(reduced_axes(call)), len(df.shape_of(data))
        return f"mean over axes {axes} of rank {rank}; only over all spatial axes"
    if not call.attrs.keepdims:
        return "mean without keepdims"
    return _whole(data, out_shape)


def _whole(data: Any, out_shape: Shape) -> Anchor:
    """Average over all spatial positions."""
    shape = df.shape_of(data)
    dims = len(shape) - 2
    base = PoolWorkload(
        kind="avg", shape=shape, kernel=shape[2:], strides=(1,) * dims, pad_before=(0,) * dims,
        pad_after=(0,) * dims, dilation=(1,) * dims, out_shape=out_shape,
    )  # fmt: skip
    return Anchor(base, (data,))


def softmax(kind: str) -> Reader:
    """A reader of normalisations by the sum; `kind` is ``"softmax"`` or ``"log_softmax"``."""

    def read(call: relax.Call, out_shape: Shape) -> Anchor | str:
        data = call.args[0]
        if reason := not_float32(data):
            return reason
        axis = int(call.attrs.axis) % len(out_shape)
        if prod(out_shape[axis + 1 :]) != 1:
            return f"axis {axis} of rank {len(out_shape)}; only the innermost"
        columns = out_shape[axis]
        rows = prod(out_shape) // columns
        return Anchor(NormalizeWorkload(kind, rows, columns, out_shape), (data,))

    return read


def layer_norm(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Layer normalisations over trailing dimensions."""
    return _norm("layer_norm", call, out_shape)


def rms_norm(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Normalisations by the root mean square over trailing dimensions."""
    return _norm("rms_norm", call, out_shape)


def _norm(kind: str, call: relax.Call, out_shape: Shape) -> Anchor | str:
    data, *constants = call.args
    if reason := not_float32(data, *constants):
        return reason
    axes = sorted(int(a) % len(out_shape) for a in call.attrs.axes)
    if axes != list(range(len(out_shape) - len(axes), len(out_shape))):
        return f"axes {axes} of rank {len(out_shape)}; only trailing ones"
    weights = [df.value_of(x) for x in constants]
    if any(w is None for w in weights):
        return "gamma or beta is not constant"
    columns = prod(out_shape[axes[0] :])
    base = NormalizeWorkload(
        kind, prod(out_shape) // columns, columns, out_shape,
        epsilon=float(call.attrs.epsilon), scale=True, shift=len(weights) == 2,
    )  # fmt: skip
    return Anchor(base, (data,), tuple(np.asarray(w).reshape(-1) for w in weights))
