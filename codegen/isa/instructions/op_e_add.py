"""OP_E_ADD: the sum of two int8 tensors, each with its own scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.isa.arithmetic import multiply_add, round_to_int8
from tvm_ext.codegen.isa.definition import define
from tvm_ext.codegen.isa.elementwise import Binary
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.registers import Register, add_register

add_register(Register(32, "offset", "f32", 0.0, "what OP_E_ADD adds: all three zero points"))


@define
class OpEAdd(Binary):
    """The order of the steps is that of ONNX Runtime's QLinearAdd, with fused products.

    `offset` is about ``zero - scale * zero of input - other_scale * zero of other``. Roundings
    depend on the size of the numbers, so tensors that are uint8 are added as such: `value_shift`.
    """

    mnemonic = "OP_E_ADD"
    opcode = 0x33
    summary = "adds two tensors of the same shape"
    meaning = (
        "t := float32((other + value_shift) * other_scale + offset); output := clamp(round("
        "float32((input + value_shift) * scale + t)) - value_shift), products and sums in float64"
    )
    registers = (
        *Binary.registers, "scale", "other_scale", "offset", "value_shift", "clamp_low",
        "clamp_high",
    )  # fmt: skip

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        registers, shift = operation.registers, operation.shift()
        left, right = (values.astype(np.int32) + shift for values in inputs)
        first = multiply_add(right, registers["other_scale"], registers["offset"])
        total = multiply_add(left, registers["scale"], first)
        return [round_to_int8(total, -shift, *operation.clamp())]
