"""OP_CONV_RELU: Conv2D, requantisation and ReLU in one."""

from __future__ import annotations

from tvm_ext.codegen.isa.convolution import Convolution
from tvm_ext.codegen.isa.definition import define
from tvm_ext.codegen.isa.layer import ACCUMULATE, ADDRESSES, BIAS, PER_CHANNEL


@define
class OpConvRelu(Convolution):
    """OP_CONV with an int8 result that isn't below the zero point."""

    mnemonic = "OP_CONV_RELU"
    opcode = 0x11
    relu = True
    summary = "Conv2D, requantisation and ReLU"
    inputs, output = "int8", "int8"
    meaning = "as OP_CONV to int8; output := max(output_zero, that)"
    fields = (*ADDRESSES, BIAS, PER_CHANNEL, ACCUMULATE)
