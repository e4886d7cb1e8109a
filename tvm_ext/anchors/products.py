"""Readers of convolutions and matrix products."""

from __future__ import annotations

from tvm import relax

from tvm_ext.anchors.anchor import Anchor, Shape, ints, not_float32, window
from tvm_ext.passes import dataflow as df
from tvm_ext.schedules.conv_workload import ConvTransposeWorkload, ConvWorkload
from tvm_ext.schedules.matmul_workload import MatmulWorkload


def conv(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Convolutions of any number of dimensions."""
    if reason := _conv_refusal(call, "OI"):
        return reason
    data, array = call.args[0], df.view_of(call.args[1])
    strides, before, after, dilation = window(call.attrs, len(out_shape) - 2)
    shape = df.shape_of(data)
    base = ConvWorkload(
        batch=shape[0], in_channels=shape[1], spatial=shape[2:], out_channels=array.shape[0],
        kernel=array.shape[2:], strides=strides, pad_before=before, pad_after=after,
        dilation=dilation, groups=int(call.attrs.groups),
    )  # fmt: skip
    return Anchor(base, (data,), (array,))


def conv_transpose(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Transposed convolutions of any number of dimensions."""
    if reason := _conv_refusal(call, "IO"):
        return reason
    data, array = call.args[0], df.value_of(call.args[1])
    strides, before, after, dilation = window(call.attrs, len(out_shape) - 2)
    shape, groups = df.shape_of(data), int(call.attrs.groups)
    base = ConvTransposeWorkload(
        batch=shape[0], in_channels=shape[1], spatial=shape[2:],
        out_channels=array.shape[1] * groups, kernel=array.shape[2:], strides=strides,
        pad_before=before, pad_after=after, dilation=dilation,
        output_padding=ints(call.attrs.output_padding), groups=groups,
    )  # fmt: skip
    return Anchor(base, (data,), (array,))


def _conv_refusal(call: relax.Call, channels: str) -> str:
    """Why no kernel takes a convolution; `channels` is the order that its weights must have."""
    data, weight = call.args
    if df.view_of(weight) is None:
        return "the weights are not constant"
    if reason := not_float32(data, weight):
        return reason
    layout, kernel_layout = str(call.attrs.data_layout), str(call.attrs.kernel_layout)
    if not layout.startswith("NC") or not kernel_layout.startswith(channels):
        return f"layouts {layout}/{kernel_layout}; only NC*/{channels}*"
    return ""


def matmul(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Matrix products, with constants or with another value of the model."""
    left, right = call.args
    if reason := not_float32(left, right):
        return reason
    a, b = df.shape_of(left), df.shape_of(right)
    if len(a) < 2 or len(b) < 2:
        return f"operands of rank {len(a)} and {len(b)}; only 2 and more"
    array = df.view_of(right)
    if array is not None and len(b) == 2:
        return Anchor(MatmulWorkload.of(a, b, packed=True), (left,), (array,))
    if array is not None or df.value_of(left) is not None:
        return "a constant operand with batch dimensions"
    return Anchor(MatmulWorkload.of(a, b), (left, right))
