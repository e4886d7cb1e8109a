"""OP_CONV: Conv2D, optionally with requantisation."""

from __future__ import annotations

from tvm_ext.codegen.isa.convolution import Convolution
from tvm_ext.codegen.isa.definition import define
from tvm_ext.codegen.isa.layer import ACCUMULATE, ADDRESSES, BIAS, PER_CHANNEL, WIDE


@define
class OpConv(Convolution):
    """A convolution whose clamp, if any, is in the registers."""

    mnemonic = "OP_CONV"
    opcode = 0x10
    relu = False
    summary = "Conv2D, optionally combined with requantisation"
    inputs, output = "int8", "int32 or int8"
    meaning = (
        "sum := bias[c] + partial[y, x, c] + sum over i, j, k of input[y*stride + i*dilation - "
        "pad_top, likewise x, k] * weights[c, i, j, k], int32, wrapping; "
        "output := sum, or clamp(round(float32(sum) * scale[c]) + output_zero)"
    )
    fields = (*ADDRESSES, BIAS, PER_CHANNEL, WIDE, ACCUMULATE)
