"""Relax modules evaluated by NumPy and PyTorch in float64: an oracle that compiles nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as tf
import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df

Arrays = list[Any]


def evaluate(mod: tvm.IRModule, *inputs: np.ndarray) -> Any:
    """What `main` computes from float arrays, in float64."""
    func = mod["main"]
    values = dict(zip(func.params, (x.astype("float64") for x in inputs), strict=True))
    for var, expr in df.bindings(func):
        result = _value(expr, values)
        # The shape that the module says is checked with every value.
        if isinstance(result, np.ndarray):
            assert result.shape == df.shape_of(var), var.name
            # PyTorch takes no reversed strides, not even those of a single element.
            result = result.copy()
        values[var] = result
    return _value(df.result(func), values)


def _value(expr: Any, values: dict[Any, Any]) -> Any:
    if isinstance(expr, relax.Var):
        return values[expr]
    if isinstance(expr, df.Constant):
        array = df.value_of(expr)
        return array.astype("float64") if array.dtype.kind == "f" else array
    if isinstance(expr, relax.Tuple):
        return [_value(field, values) for field in expr.fields]
    if isinstance(expr, relax.TupleGetItem):
        return _value(expr.tuple_value, values)[expr.index]
    if isinstance(expr, relax.ShapeExpr):
        return [int(n) for n in expr.values]
    if isinstance(expr, relax.Call):
        arguments = [_value(arg, values) for arg in expr.args]
        return _OPERATORS[df.op_name(expr).removeprefix("relax.")](expr.attrs, *arguments)
    return int(getattr(expr, "value", expr))


def _conv(attrs: Any, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    rank = x.ndim - 2
    assert attrs.kernel_layout[:2] == "OI" and attrs.data_layout[:2] == "NC"
    pads = [int(p) for p in attrs.padding]
    assert pads[:rank] == pads[rank:]
    call = (tf.conv1d, tf.conv2d, tf.conv3d)[rank - 1]
    strides, dilation = ([int(n) for n in v] for v in (attrs.strides, attrs.dilation))
    tensors = torch.from_numpy(x), torch.from_numpy(weights)
    return call(*tensors, None, strides, pads[:rank], dilation, int(attrs.groups)).numpy()


def _conv_transpose(attrs: Any, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    strides = [int(n) for n in attrs.strides]
    return tf.conv_transpose2d(
        torch.from_numpy(x), torch.from_numpy(weights), None, strides
    ).numpy()


def _max_pool(attrs: Any, x: np.ndarray) -> np.ndarray:
    size, strides = ([int(n) for n in v] for v in (attrs.pool_size, attrs.strides))
    return tf.max_pool2d(torch.from_numpy(x), size, strides).numpy()


def _avg_pool(attrs: Any, x: np.ndarray) -> np.ndarray:
    size, strides = ([int(n) for n in v] for v in (attrs.pool_size, attrs.strides))
    return tf.avg_pool2d(torch.from_numpy(x), size, strides).numpy()


def _batch_norm(attrs: Any, x: np.ndarray, *statistics: np.ndarray) -> Arrays:
    shape = [1] * x.ndim
    shape[int(attrs.axis)] = -1
    gamma, beta, mean, variance = (v.reshape(shape) for v in statistics)
    y = (x - mean) / np.sqrt(variance + float(attrs.epsilon)) * gamma + beta
    return [y, statistics[2], statistics[3]]


def _instance_norm(attrs: Any, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    axes = tuple(int(a) for a in attrs.axes)
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + attrs.epsilon)
    return y * gamma.reshape(1, -1, 1, 1) + beta.reshape(1, -1, 1, 1)


def _rms_norm(attrs: Any, x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    axes = tuple(int(a) for a in attrs.axes)
    return x / np.sqrt((x**2).mean(axes, keepdims=True) + attrs.epsilon) * gamma


def _prelu(attrs: Any, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    shape = [1] * x.ndim
    shape[int(attrs.axis)] = -1
    return np.where(x > 0, x, x * slopes.reshape(shape))


def _pad(attrs: Any, x: np.ndarray) -> np.ndarray:
    widths = np.reshape([int(w) for w in attrs.pad_width], (-1, 2))
    return np.pad(x, widths, constant_values=float(attrs.pad_value))


def _strided_slice(
    attrs: Any, x: np.ndarray, axes: list[int], begin: list[int], end: list[int], *steps: list[int]
) -> np.ndarray:
    index = [slice(None)] * x.ndim
    strides = steps[0] if steps and steps[0] else [1] * len(axes)
    for axis, *bounds in zip(axes, begin, end, strides, strict=True):
        # An end far below zero means that the first element is included.
        index[axis] = slice(bounds[0], None if bounds[1] < -(1 << 30) else bounds[1], bounds[2])
    return x[tuple(index)]


def _split(attrs: Any, x: np.ndarray) -> Arrays:
    sections = attrs.indices_or_sections
    where = int(sections) if not hasattr(sections, "__len__") else [int(i) for i in sections]
    return np.split(x, where, int(attrs.axis))


def _reduce(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda attrs, x: function(
        x, axis=tuple(int(a) for a in attrs.axis), keepdims=bool(attrs.keepdims)
    )


def _softmax(attrs: Any, x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(int(attrs.axis), keepdims=True))
    return e / e.sum(int(attrs.axis), keepdims=True)


def _resize(attrs: Any, x: np.ndarray, size: list[int]) -> np.ndarray:
    assert attrs.method == "nearest_neighbor"
    factors = [n // m for n, m in zip(size, x.shape[2:], strict=True)]
    return x.repeat(factors[0], 2).repeat(factors[1], 3)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "nn.conv1d": _conv, "nn.conv2d": _conv, "nn.conv3d": _conv,
    "nn.conv2d_transpose": _conv_transpose,
    "nn.max_pool2d": _max_pool, "nn.avg_pool2d": _avg_pool, "nn.batch_norm": _batch_norm,
    "nn.instance_norm": _instance_norm, "nn.rms_norm": _rms_norm, "nn.prelu": _prelu,
    "nn.pad": _pad, "nn.softmax": _softmax, "nn.relu": lambda a, x: np.maximum(x, 0),
    "image.resize2d": _resize, "strided_slice": _strided_slice, "split": _split,
    "sigmoid": lambda a, x: 0.5 * (1 + np.tanh(0.5 * x)), "tanh": lambda a, x: np.tanh(x),
    "add": lambda a, x, y: x + y, "subtract": lambda a, x, y: x - y,
    "multiply": lambda a, x, y: x * y, "matmul": lambda a, x, y: x @ y,
    "concat": lambda a, parts: np.concatenate(parts, int(a.axis)),
    "reshape": lambda a, x, shape: x.reshape(shape), "flatten": lambda a, x: x.reshape(-1),
    "squeeze": lambda a, x: x.squeeze(tuple(int(i) for i in a.axis)),
    "expand_dims": lambda a, x: np.expand_dims(x, tuple(int(i) for i in a.axis)),
    "permute_dims": lambda a, x: x.transpose(a.axes and [int(i) for i in a.axes]),
    "broadcast_to": lambda a, x, shape: np.broadcast_to(x, shape),
    "flip": lambda a, x: np.flip(x, int(a.axis)),
    "take": lambda a, x, indices: np.take(x, indices, int(a.axis)),
    "cumsum": lambda a, x: x.cumsum(int(a.axis)),
    "mean": _reduce(np.mean), "max": _reduce(np.max), "sum": _reduce(np.sum),
}  # fmt: skip
