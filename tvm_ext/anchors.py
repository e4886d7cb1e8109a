"""How each anchor operator of Relax is read: workload, data inputs, constant weights.

A reader returns an `Anchor`, or the reason (naming attribute and value) why our kernels don't
take the call; the layer then falls back to TVM's own operator, and the plan shows that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.schedules import workload as wl
from tvm_ext.schedules.conv_workload import ConvTransposeWorkload, ConvWorkload
from tvm_ext.schedules.epilogue import Epilogue

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Anchor:
    """What a reader found. `base` has no epilogue yet."""

    base: Any
    inputs: tuple[Any, ...]
    weights: tuple[np.ndarray, ...] = ()

    def workload(self, epilogue: Epilogue | None) -> Any:
        """The workload with the epilogue that was fused onto it."""
        return self.base if epilogue is None else replace(self.base, epilogue=epilogue)


def _ints(values: Any) -> Shape:
    return tuple(int(v) for v in values)


def _window(attrs: Any, dims: int) -> tuple[Shape, Shape, Shape, Shape]:
    """strides, pad_before, pad_after, dilation."""
    padding = _ints(attrs.padding)
    return _ints(attrs.strides), padding[:dims], padding[dims:], _ints(attrs.dilation)


def _not_float32(*exprs: Any) -> str:
    for expr in exprs:
        if df.dtype_of(expr) != "float32":
            return f"dtype {df.dtype_of(expr)}; only float32 has a specialised kernel"
    return ""


def _conv(call: relax.Call, out_shape: Shape) -> Anchor | str:
    data, weight = call.args
    array = df.value_of(weight)
    if array is None:
        return "the weights are not constant"
    if reason := _not_float32(data, weight):
        return reason
    dims = len(out_shape) - 2
    layout, kernel_layout = str(call.attrs.data_layout), str(call.attrs.kernel_layout)
    if not layout.startswith("NC") or not kernel_layout.startswith("OI"):
        return f"layouts {layout}/{kernel_layout}; only NC*/OI*"
    strides, before, after, dilation = _window(call.attrs, dims)
    shape = df.shape_of(data)
    base = ConvWorkload(
        batch=shape[0], in_channels=shape[1], spatial=shape[2:], out_channels=array.shape[0],
        kernel=array.shape[2:], strides=strides, pad_before=before, pad_after=after,
        dilation=dilation, groups=int(call.attrs.groups),
    )  # fmt: skip
    return Anchor(base, (data,), (array,))


def _conv_transpose(call: relax.Call, out_shape: Shape) -> Anchor | str:
    data, weight = call.args
    array = df.value_of(weight)
    if array is None:
        return "the weights are not constant"
    if reason := _not_float32(data, weight):
        return reason
    dims = len(out_shape) - 2
    layout, kernel_layout = str(call.attrs.data_layout), str(call.attrs.kernel_layout)
    if not layout.startswith("NC") or not kernel_layout.startswith("IO"):
        return f"layouts {layout}/{kernel_layout}; only NC*/IO*"
    strides, before, after, dilation = _window(call.attrs, dims)
    shape, groups = df.shape_of(data), int(call.attrs.groups)
    base = ConvTransposeWorkload(
        batch=shape[0], in_channels=shape[1], spatial=shape[2:],
        out_channels=array.shape[1] * groups, kernel=array.shape[2:], strides=strides,
        pad_before=before, pad_after=after, dilation=dilation,
        output_padding=_ints(call.attrs.output_padding), groups=groups,
    )  # fmt: skip
    return Anchor(base, (data,), (array,))


def _matmul(call: relax.Call, out_shape: Shape) -> Anchor | str:
    left, right = call.args
    if reason := _not_float32(left, right):
        return reason
    a, b = df.shape_of(left), df.shape_of(right)
    if len(a) < 2 or len(b) < 2:
        return f"operands of rank {len(a)} and {len(b)}; only 2 and more"
    array = df.value_of(right)
    if array is not None and len(b) == 2:
        base = wl.MatmulWorkload((), prod(a[:-1]), b[1], a[-1], packed=True, out_shape=out_shape)
        return Anchor(base, (left,), (array,))
    if array is not None or df.value_of(left) is not None:
        return "a constant operand with batch dimensions"
    batch = out_shape[:-2]
    if prod(a[:-2]) != prod(batch):
        return f"left batch {a[:-2]} is broadcast to {batch}"
    if prod(b[:-2]) not in (1, prod(batch)):
        return f"right batch {b[:-2]} is broadcast to {batch}"
    if prod(b[:-2]) == 1 and prod(batch) != 1:
        # The same right side for all: one tall matmul.
        folded, rows = (1,), prod(a[:-1])
    else:
        folded, rows = (prod(batch),), a[-2]
    base = wl.MatmulWorkload(
        folded, rows, b[-1], a[-1], packed=False, out_shape=out_shape, lhs_shape=a, rhs_shape=b
    )
    return Anchor(base, (left, right))


def _pool(kind: str) -> Callable[[relax.Call, Shape], Anchor | str]:
    def read(call: relax.Call, out_shape: Shape) -> Anchor | str:
        data = call.args[0]
        if reason := _not_float32(data):
            return reason
        if not str(call.attrs.layout).startswith("NC"):
            return f"layout {call.attrs.layout}; only NC*"
        strides, before, after, dilation = _window(call.attrs, len(out_shape) - 2)
        base = wl.PoolWorkload(
            kind=kind, shape=df.shape_of(data), kernel=_ints(call.attrs.pool_size),
            strides=strides, pad_before=before, pad_after=after, dilation=dilation,
            out_shape=out_shape, count_include_pad=bool(call.attrs.count_include_pad),
        )  # fmt: skip
        return Anchor(base, (data,))

    return read


def _global_pool(call: relax.Call, out_shape: Shape) -> Anchor | str:
    data = call.args[0]
    if reason := _not_float32(data):
        return reason
    shape = df.shape_of(data)
    if any(d != 1 for d in out_shape[2:]):
        return f"adaptive pooling to {out_shape[2:]}; only to single positions"
    return _whole(data, shape, out_shape)


def _mean(call: relax.Call, out_shape: Shape) -> Anchor | str:
    data = call.args[0]
    if reason := _not_float32(data):
        return reason
    shape = df.shape_of(data)
    axes = sorted(int(a) % len(shape) for a in call.attrs.axis or ())
    if len(shape) < 3 or axes != list(range(2, len(shape))):
        return f"mean over axes {axes} of rank {len(shape)}; only over all spatial axes"
    if not call.attrs.keepdims:
        return "mean without keepdims"
    return _whole(data, shape, out_shape)


def _whole(data: Any, shape: Shape, out_shape: Shape) -> Anchor:
    """Average over all spatial positions."""
    dims = len(shape) - 2
    base = wl.PoolWorkload(
        kind="avg", shape=shape, kernel=shape[2:], strides=(1,) * dims, pad_before=(0,) * dims,
        pad_after=(0,) * dims, dilation=(1,) * dims, out_shape=out_shape,
    )  # fmt: skip
    return Anchor(base, (data,))


def _softmax(kind: str) -> Callable[[relax.Call, Shape], Anchor | str]:
    def read(call: relax.Call, out_shape: Shape) -> Anchor | str:
        data = call.args[0]
        if reason := _not_float32(data):
            return reason
        axis = int(call.attrs.axis) % len(out_shape)
        if prod(out_shape[axis + 1 :]) != 1:
            return f"axis {axis} of rank {len(out_shape)}; only the innermost"
        columns = out_shape[axis]
        rows = prod(out_shape) // columns
        return Anchor(wl.NormalizeWorkload(kind, rows, columns, out_shape), (data,))

    return read


def _layer_norm(call: relax.Call, out_shape: Shape) -> Anchor | str:
    data, gamma, beta = call.args
    if reason := _not_float32(data, gamma, beta):
        return reason
    axes = sorted(int(a) % len(out_shape) for a in call.attrs.axes)
    if axes != list(range(len(out_shape) - len(axes), len(out_shape))):
        return f"axes {axes} of rank {len(out_shape)}; only trailing ones"
    weights = [df.value_of(gamma), df.value_of(beta)]
    if any(w is None for w in weights):
        return "gamma or beta is not constant"
    columns = prod(out_shape[axes[0] :])
    base = wl.NormalizeWorkload(
        "layer_norm", prod(out_shape) // columns, columns, out_shape,
        epsilon=float(call.attrs.epsilon), scale=True, shift=True,
    )  # fmt: skip
    return Anchor(base, (data,), tuple(np.asarray(w).reshape(-1) for w in weights))


def _concat(call: relax.Call, out_shape: Shape) -> Anchor | str:
    parts = call.args[0]
    if not isinstance(parts, relax.Tuple):
        return "the parts are not listed"
    if any(df.value_of(f) is not None for f in parts.fields):
        return "a part is constant"
    shapes = tuple(df.shape_of(f) for f in parts.fields)
    axis = int(call.attrs.axis) % len(out_shape)
    return Anchor(
        wl.ConcatWorkload(shapes, axis, df.dtype_of(parts.fields[0])), tuple(parts.fields)
    )


def _view(call: relax.Call, out_shape: Shape) -> Anchor | str:
    data = call.args[0]
    if df.value_of(data) is not None:
        return "the tensor is constant"
    return Anchor(wl.ViewWorkload(df.shape_of(data), out_shape, df.dtype_of(data)), (data,))


def _permute(call: relax.Call, out_shape: Shape) -> Anchor | str:
    shape = df.shape_of(call.args[0])
    axes = call.attrs.axes
    order = list(reversed(range(len(shape)))) if axes is None else list(_ints(axes))
    kept = [a for a in order if shape[a] != 1]
    if kept == sorted(kept):
        return _view(call, out_shape)
    data = call.args[0]
    if df.value_of(data) is not None:
        return "the tensor is constant"
    return Anchor(wl.TransposeWorkload(shape, tuple(order), df.dtype_of(data)), (data,))


ANCHORS: dict[str, Callable[[relax.Call, Shape], Anchor | str]] = {
    "relax.nn.conv1d": _conv,
    "relax.nn.conv2d": _conv,
    "relax.nn.conv3d": _conv,
    "relax.nn.conv1d_transpose": _conv_transpose,
    "relax.nn.conv2d_transpose": _conv_transpose,
    "relax.nn.conv3d_transpose": _conv_transpose,
    "relax.matmul": _matmul,
    "relax.nn.max_pool1d": _pool("max"),
    "relax.nn.max_pool2d": _pool("max"),
    "relax.nn.max_pool3d": _pool("max"),
    "relax.nn.avg_pool1d": _pool("avg"),
    "relax.nn.avg_pool2d": _pool("avg"),
    "relax.nn.avg_pool3d": _pool("avg"),
    "relax.nn.adaptive_avg_pool1d": _global_pool,
    "relax.nn.adaptive_avg_pool2d": _global_pool,
    "relax.nn.adaptive_avg_pool3d": _global_pool,
    "relax.mean": _mean,
    "relax.nn.softmax": _softmax("softmax"),
    "relax.nn.log_softmax": _softmax("log_softmax"),
    "relax.nn.layer_norm": _layer_norm,
    "relax.concat": _concat,
    "relax.reshape": _view,
    "relax.flatten": _view,
    "relax.squeeze": _view,
    "relax.expand_dims": _view,
    "relax.permute_dims": _permute,
}
