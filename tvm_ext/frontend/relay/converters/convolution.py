"""Convolutions and their transposes, of one to three dimensions, in all of Relay's layouts.

All become ``relax.nn.conv{1,2,3}d[_transpose]`` in NCHW and OIHW (IOHW), the form that the later
passes know; transposes at both ends are emitted for other layouts, and meet each other there.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, constant, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.moves import relayout, reshape
from tvm_ext.frontend.relay.converters.windows import SPATIAL, pads, per_axis
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts(
    "nn.conv1d",
    "nn.conv2d",
    "nn.conv3d",
    "nn.contrib_conv2d_NCHWc",
    "nn.contrib_conv2d_NCHWc_int8",
    "nn.contrib_depthwise_conv2d_NCHWc",
)
def convert_conv(call: OpCall) -> relax.Expr:
    """Convert a convolution; dtypes narrower than the output's are widened first."""
    data, weight = call.tensor(0), call.tensor(1)
    dtype = call.dtype("out_dtype", dtype_of(data))
    return convolve(call, call.cast(data, dtype), widened(call, weight, dtype))


@converts("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def convert_conv_transpose(call: OpCall) -> relax.Expr:
    """Convert a transposed convolution; the weights are (in, out / groups, kernel...)."""
    data, weight = call.tensor(0), call.tensor(1)
    dtype = call.dtype("out_dtype", dtype_of(data))
    return convolve_transposed(call, call.cast(data, dtype), widened(call, weight, dtype))


def convolve(call: OpCall, data: relax.Expr, weight: relax.Expr) -> relax.Expr:
    """Return the convolution that a call's attributes describe, in its output layout."""
    rank = spatial_rank(call)
    plain, layout, result = _layouts(call, rank)
    data = relayout(call.bb, data, layout, plain)
    weight = relayout(call.bb, weight, _kernel_layout(call, f"OI{SPATIAL[rank]}"), f"OI{plain[2:]}")
    groups = int(call.attr("groups", 1))
    weight = _depthwise(call, weight, shape_of(data)[1], groups)
    out = call.emit(
        getattr(relax.op.nn, f"conv{rank}d"),
        data,
        weight,
        strides=per_axis(call, "strides", rank),
        padding=pads(call, rank),
        dilation=per_axis(call, "dilation", rank),
        groups=groups,
        data_layout=plain,
        kernel_layout=f"OI{plain[2:]}",
    )
    return relayout(call.bb, out, plain, result)


def convolve_transposed(call: OpCall, data: relax.Expr, weight: relax.Expr) -> relax.Expr:
    """Return the transposed convolution that a call's attributes describe."""
    rank = spatial_rank(call)
    plain, layout, result = _layouts(call, rank)
    kernel = f"IO{SPATIAL[rank]}"
    data = relayout(call.bb, data, layout, plain)
    weight = relayout(call.bb, weight, _kernel_layout(call, kernel), kernel)
    weight = _spread(weight, per_axis(call, "dilation", rank))
    strides = per_axis(call, "strides", rank)
    extra = per_axis(call, "output_padding", rank, 0)
    if any(e >= s for e, s in zip(extra, strides, strict=True)):
        raise ModelError(f"output_padding is {extra}; it must be below the strides {strides}")
    out = call.emit(
        getattr(relax.op.nn, f"conv{rank}d_transpose"),
        data,
        weight,
        strides=strides,
        padding=pads(call, rank),
        output_padding=extra,
        dilation=[1] * rank,
        groups=int(call.attr("groups", 1)),
        data_layout=plain,
        kernel_layout=kernel,
    )
    return relayout(call.bb, out, plain, result)


def spatial_rank(call: OpCall) -> int:
    """How many dimensions the window has, from the operator's name."""
    return next(n for n in SPATIAL if f"{n}d" in call.name)


def widened(call: OpCall, weight: relax.Expr, dtype: str) -> relax.Expr:
    """Weights in the dtype that products are summed in; at import where they are known."""
    value = constant(weight)
    return call.cast(weight, dtype) if value is None else const(value.astype(dtype, copy=False))


def _layouts(call: OpCall, rank: int) -> tuple[str, str, str]:
    """The layout that Relax gets, the data's and the output's."""
    for name in ("auto_scheduler_rewritten_layout", "meta_schedule_original_shape"):
        if call.attr(name):
            raise ModelError(f"{name} is {call.attr(name)!r}: weights that a tuner rewrote")
    plain = f"NC{SPATIAL[rank]}"
    layout = str(call.attr("data_layout", plain))
    return plain, layout, str(call.attr("out_layout", "") or layout)


def _kernel_layout(call: OpCall, default: str) -> str:
    return str(call.attr("kernel_layout", default))


def _depthwise(call: OpCall, weight: relax.Expr, channels: int, groups: int) -> relax.Expr:
    """Relay's depthwise weights are (C, multiplier, ...); Relax has (C * multiplier, 1, ...)."""
    first, second, *kernel = shape_of(weight)
    if groups == channels == first and groups > 1 and second > 1:
        return reshape(call.bb, weight, [first * second, 1, *kernel])
    return weight


def _spread(weight: relax.Expr, dilations: list[int]) -> relax.Expr:
    """Spell dilation out as zeros in the kernel: no kernel for the transposed form takes it."""
    if all(d == 1 for d in dilations):
        return weight
    value = constant(weight)
    if value is None:
        raise ModelError(f"dilation is {dilations}; other than 1 it needs constant weights")
    extents = [(k - 1) * d + 1 for k, d in zip(value.shape[2:], dilations, strict=True)]
    spread = np.zeros((*value.shape[:2], *extents), value.dtype)
    every = (slice(None), slice(None), *(slice(None, None, d) for d in dilations))
    spread[every] = value
    return const(spread)
