"""What a convolution's kernel can compute in place of reading it."""

from __future__ import annotations

from typing import Any

from tvm.ir import GenericConst

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.enlarging import takes_linear, takes_nearest, whole_factors
from tvm_ext.passes.fusion.kernel_parts import KernelForm

_POOLS = ("relax.nn.max_pool2d", "relax.nn.avg_pool2d")


def computes(conv: Any, before: Any) -> bool:
    """Whether a convolution's kernel may compute another operator's rows as it reads them.

    The operator is a pool, an enlargement, a depthwise convolution before a 1x1 one, or a 1x1
    convolution before a plain 3x3 one; or it is the first of an inverted residual block, a 1x1
    convolution before a depthwise one.
    """
    if not _is_conv(conv):
        return False
    if _is_conv(before):
        if _is_pointwise(before):
            return _is_depthwise(conv) or _is_plain_3x3(conv)
        return _is_depthwise(before) and _is_pointwise(conv)
    # Of images that a strided 1x1 convolution reads a part of, most rows would be for nothing.
    picks = _window(conv) == 1 and any(int(s) > 1 for s in conv.attrs.strides)
    return (
        int(conv.attrs.groups) == 1 and not picks and (_is_pool(before) or is_enlargement(before))
    )


def refusal(form: KernelForm, producer: KernelForm) -> str:
    """Why a kernel can't compute its first input itself; an empty string if it can."""
    assert form.anchor is not None and producer.anchor is not None
    first = producer.producer
    block = first is not None and _is_pointwise(form.anchor[1]) and form.pool is None
    steps = producer.prologue is not None and not _is_plain_3x3(form.anchor[1])
    if form.prologue or steps or producer.pool or not (first is None or block):
        return "one of the two kernels has steps before it, a pool or a producer"
    if form.shuffle > 1 or producer.shuffle > 1:
        return "one of the two kernels shuffles its channels"
    if any(not isinstance(x, GenericConst) for x in producer.operands):
        return "the steps between read a computed tensor"
    channels = df.shape_of(producer.anchor[1])[1]
    if any(operand.shape != (1, channels, 1, 1) for operand in producer.epilogue.operands):
        return "a step between has a constant for more than each channel"
    return ""


def is_unfinished(form: KernelForm) -> bool:
    """Whether a convolution with a producer is only the beginning of an inverted residual block."""
    return form.anchor is not None and _is_conv(form.anchor[1]) and _is_depthwise(form.anchor[1])


def is_enlargement(expr: Any) -> bool:
    """Whether an operator enlarges images in a way that rows can be computed of."""
    if df.op_name(expr) != "relax.image.resize2d" or str(expr.attrs.layout) != "NCHW":
        return False
    return (takes_nearest(expr) or takes_linear(expr)) and whole_factors(expr) is not None


def _is_conv(expr: Any) -> bool:
    """Whether an operator is a convolution of images with constant weights."""
    if df.op_name(expr) != "relax.nn.conv2d" or df.dtype_of(expr) != "float32":
        return False
    return str(expr.attrs.data_layout) == "NCHW" and isinstance(expr.args[1], GenericConst)


def _is_pool(expr: Any) -> bool:
    """Whether an operator is a pool of several windows."""
    if df.op_name(expr) not in _POOLS or df.dtype_of(expr) != "float32":
        return False
    several = any(n != 1 for n in df.shape_of(expr)[2:])
    return str(expr.attrs.layout) == "NCHW" and several


def _is_depthwise(conv: Any) -> bool:
    channels = df.shape_of(conv)[1]
    return int(conv.attrs.groups) == channels == df.shape_of(conv.args[0])[1]


def _is_plain_3x3(conv: Any) -> bool:
    """Whether a convolution is one that Winograd's algorithm takes."""
    numbers = (*conv.attrs.strides, *conv.attrs.dilation, conv.attrs.groups)
    return df.shape_of(conv.args[1])[2:] == (3, 3) and all(int(n) == 1 for n in numbers)


def _window(conv: Any) -> int:
    """Taps of a convolution's kernel, or more with padding."""
    height, width = df.shape_of(conv.args[1])[2:]
    return height * width + sum(int(n) for n in conv.attrs.padding)


def _is_pointwise(conv: Any) -> bool:
    """Whether a convolution's positions each read one of another tensor with as many."""
    numbers = (*conv.attrs.strides, conv.attrs.groups)
    return _window(conv) == 1 and all(int(n) == 1 for n in numbers)
