"""OP_ACT_RELU: ReLU of int8 values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.isa.definition import define
from tvm_ext.codegen.isa.elementwise import Unary
from tvm_ext.codegen.isa.operation import Operation


@define
class OpActRelu(Unary):
    """With clamp_high it is ReLU6 too."""

    mnemonic = "OP_ACT_RELU"
    opcode = 0x20
    summary = "ReLU of values whose scale and zero point stay"
    meaning = "output := clamp(max(input, input_zero))"
    registers = (*Unary.registers, "input_zero", "clamp_low", "clamp_high")

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        low, high = operation.clamp()
        return [np.minimum(np.maximum(inputs[0], max(low, operation.whole("input_zero"))), high)]
