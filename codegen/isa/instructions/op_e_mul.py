"""OP_E_MUL: the product of two int8 tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.isa.arithmetic import multiply_add, round_to_int8
from tvm_ext.codegen.isa.definition import define
from tvm_ext.codegen.isa.elementwise import Binary
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.registers import Register, add_register

add_register(Register(33, "other_zero", "i8", 0, "zero point of OP_E_MUL's second input"))


@define
class OpEMul(Binary):
    """`scale` holds both inputs' scales over the result's. The zero point is added before rounding,
    as ONNX Runtime does it.
    """

    mnemonic = "OP_E_MUL"
    opcode = 0x35
    summary = "multiplies two tensors of the same shape"
    meaning = (
        "output := clamp(round(float32((input - input_zero) * (other - other_zero) * scale + "
        "output_zero + value_shift)) - value_shift), product and sum in float64"
    )
    registers = (
        *Binary.registers, "input_zero", "other_zero", "output_zero", "scale",
        "value_shift", "clamp_low", "clamp_high",
    )  # fmt: skip

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        first = inputs[0].astype(np.int32) - operation.whole("input_zero")
        second = inputs[1].astype(np.int32) - operation.whole("other_zero")
        scale, shift = operation.registers["scale"], operation.shift()
        total = multiply_add(first * second, scale, operation.whole("output_zero") + shift)
        return [round_to_int8(total, -shift, *operation.clamp())]
