"""OP_ACT_LRELU: leaky ReLU of int8 values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.isa.arithmetic import requantize
from tvm_ext.codegen.isa.definition import define
from tvm_ext.codegen.isa.elementwise import Unary
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.registers import Register, add_register

add_register(
    Register(34, "negative_scale", "f32", 1.0, "factor of OP_ACT_LRELU below the zero point")
)


@define
class OpActLrelu(Unary):
    """The slope is part of `negative_scale`."""

    mnemonic = "OP_ACT_LRELU"
    opcode = 0x21
    summary = "leaky ReLU, to a scale and zero point of its own"
    meaning = (
        "d := input - input_zero; output := clamp(round(float32(d) * (scale if d >= 0 else "
        "negative_scale)) + output_zero)"
    )
    registers = (
        *Unary.registers, "input_zero", "output_zero", "scale", "negative_scale", "clamp_low",
        "clamp_high",
    )  # fmt: skip

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        distance = inputs[0].astype(np.int32) - operation.whole("input_zero")
        registers = operation.registers
        scale = np.where(
            distance >= 0,
            np.float32(registers["scale"]),
            np.float32(registers["negative_scale"]),
        )
        return [requantize(distance, scale, operation.whole("output_zero"), *operation.clamp())]
