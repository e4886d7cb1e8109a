"""Windows of tensors that no convolution or pool computes."""

from __future__ import annotations

from itertools import product

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters import padding as onnx_padding
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, scalar, shape_of
from tvm_ext.frontend.relay.converters.moves import permute, relayout, reshape
from tvm_ext.frontend.relay.converters.windows import pads, per_axis
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("sliding_window")
def convert_sliding_window(call: OpCall) -> relax.Expr:
    """Convert to all windows: the dimensions from `axis` on count them, then those in them."""
    data = call.tensor(0)
    axis = int(call.required("axis")) % len(shape_of(data))
    window, strides = (
        [int(n) for n in call.required(name)] for name in ("window_shape", "strides")
    )
    for i, (extent, stride) in enumerate(zip(window, strides, strict=True)):
        # Each window dimension taken before stands twice: where it begins, and what is in it.
        at = axis + 2 * i
        count = (shape_of(data)[at] - extent) // stride + 1
        if count < 1:
            raise ModelError(f"window_shape is {window}; the data has the shape {shape_of(data)}")
        index = np.arange(count)[:, None] * stride + np.arange(extent)
        data = call.emit(relax.op.take, data, const(index, "int64"), at, mode="clip")
    many = len(window)
    counts, inner = range(axis, axis + 2 * many, 2), range(axis + 1, axis + 2 * many, 2)
    return permute(call.bb, data, [*range(axis), *counts, *inner])


@converts("image.dilation2d")
def convert_dilation2d(call: OpCall) -> relax.Expr:
    """Convert to the maximum over a window of the data plus the filter; padding is 0."""
    layout = str(call.attr("data_layout", "NCHW"))
    data = relayout(call.bb, call.tensor(0), layout, "NCHW")
    filters = relayout(call.bb, call.tensor(1), str(call.attr("kernel_layout", "IHW")), "IHW")
    channels, *kernel = shape_of(filters)
    strides, dilations = per_axis(call, "strides", 2), per_axis(call, "dilations", 2)
    data = _padded(call, data, pads(call, 2))
    dtype = call.dtype("out_dtype", dtype_of(data))
    data, filters = call.cast(data, dtype), call.cast(filters, dtype)
    extents = [
        ((size - (k - 1) * d - 1) // s) * s + 1
        for size, k, d, s in zip(shape_of(data)[2:], kernel, dilations, strides, strict=True)
    ]
    out = None
    for at in product(*map(range, kernel)):
        begin = [i * d for i, d in zip(at, dilations, strict=True)]
        end = [b + extent for b, extent in zip(begin, extents, strict=True)]
        taken = call.emit(relax.op.strided_slice, data, [2, 3], begin, end, strides)
        tap = call.emit(relax.op.strided_slice, filters, [1, 2], list(at), [i + 1 for i in at])
        tap = reshape(call.bb, tap, (channels, 1, 1))
        summed = call.emit(relax.op.add, taken, tap)
        out = summed if out is None else call.emit(relax.op.maximum, out, summed)
    return relayout(call.bb, out, "NCHW", layout)


@converts("nn.correlation")
def convert_correlation(call: OpCall) -> relax.Expr:
    """Convert to the mean product, or difference, of two images' windows, for every displacement.

    FlowNet's: channel ``q`` compares with the window that is shifted by ``q // n - r`` steps down
    and ``q % n - r`` right, where ``n = 2 * r + 1``.
    """
    layout = str(call.attr("layout", "NCHW"))
    if layout != "NCHW":
        raise ModelError(f"layout is {layout!r}; it must be NCHW")
    kernel, reach, stride, step = (
        int(call.attr(name, 1))
        for name in ("kernel_size", "max_displacement", "stride1", "stride2")
    )
    first, second = (_padded(call, call.tensor(i), pads(call, 2)) for i in range(2))
    border = 2 * (reach + (kernel - 1) // 2)
    counts = [-(-(size - border) // stride) for size in shape_of(first)[2:]]
    if min(counts) < 1:
        raise ModelError(
            f"max_displacement is {reach} and kernel_size {kernel}; the padded images are "
            f"{shape_of(first)[2:]}"
        )
    extents = [(count - 1) * stride + kernel for count in counts]

    def window(image: relax.Expr, down: int, right: int) -> relax.Expr:
        begin = [reach + down, reach + right]
        end = [b + extent for b, extent in zip(begin, extents, strict=True)]
        return call.emit(relax.op.strided_slice, image, [2, 3], begin, end)

    here = window(first, 0, 0)
    shifts = [i * step for i in range(-(reach // step), reach // step + 1)]
    maps = []
    for down, right in product(shifts, shifts):
        there = window(second, down, right)
        if call.attr("is_multiply", True):
            compared = call.emit(relax.op.multiply, here, there)
        else:
            compared = call.emit(relax.op.abs, call.emit(relax.op.subtract, here, there))
        maps.append(call.emit(relax.op.mean, compared, [1], True))
    joined = call.emit(relax.op.concat, maps, 1)
    if kernel == stride == 1:
        return joined
    return relax.op.nn.avg_pool2d(joined, [kernel, kernel], [stride, stride])


@converts("nn.dilate")
def convert_dilate(call: OpCall) -> relax.Expr:
    """Convert to the tensor with a number between its elements, ``stride - 1`` times."""
    data = call.tensor(0)
    filler = scalar(float(call.attr("dilation_value", 0.0)), data)
    strides = [int(n) for n in call.required("strides")]
    for axis, stride in enumerate(strides):
        if stride == 1:
            continue
        shape = list(shape_of(data))
        between = call.emit(
            relax.op.broadcast_to, filler, (*shape[: axis + 1], stride - 1, *shape[axis + 1 :])
        )
        spread = call.emit(relax.op.expand_dims, data, axis + 1)
        spread = call.emit(relax.op.concat, [spread, between], axis + 1)
        extent = (shape[axis] - 1) * stride + 1
        shape[axis] *= stride
        spread = reshape(call.bb, spread, shape)
        data = call.emit(relax.op.strided_slice, spread, [axis], [0], [extent])
    return data


def _padded(call: OpCall, data: relax.Expr, padding: list[int]) -> relax.Expr:
    """Images with zeros around them: top, left, bottom, right."""
    top, left, bottom, right = padding
    widths = np.asarray([0, 0, top, left, 0, 0, bottom, right], "int64")
    filler = const(np.zeros((), dtype_of(data)))
    return call.onnx(onnx_padding.convert_pad, [data, const(widths), filler])
