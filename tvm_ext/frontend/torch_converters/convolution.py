"""Convolutions of one, two and three spatial dimensions, transposed ones too."""

from __future__ import annotations

import torch
from tvm import relax

from tvm_ext.frontend.onnx_converters.convolution import convert_conv, convert_conv_transpose
from tvm_ext.frontend.torch_registry import Call, converts, spread

aten = torch.ops.aten


@converts(aten.convolution.default)
def convert_convolution(call: Call) -> relax.Expr:
    """Convert what all of torch's convolutions become."""
    rank = len(call.shape) - 2
    attrs = {
        "strides": spread(call["stride"], rank),
        "pads": spread(call["padding"], rank) * 2,
        "dilations": spread(call["dilation"], rank),
        "group": call["groups"],
    }
    inputs = [call["input"], call["weight"], call["bias"]]
    if not call["transposed"]:
        return call.onnx(convert_conv, inputs, **attrs)
    attrs["output_padding"] = spread(call["output_padding"], rank)
    return call.onnx(convert_conv_transpose, inputs, **attrs)
