"""OP_E_ABS: absolute values of int8 values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.isa.definition import define
from tvm_ext.codegen.isa.elementwise import Unary
from tvm_ext.codegen.isa.operation import Operation


@define
class OpEAbs(Unary):
    """The absolute value of what int8 values stand for: the distance from the zero point."""

    mnemonic = "OP_E_ABS"
    opcode = 0x30
    summary = "absolute values of a tensor, the scale stays"
    meaning = "output := clamp(|input - input_zero| + output_zero)"
    registers = (*Unary.registers, "input_zero", "output_zero", "clamp_low", "clamp_high")

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        distance = np.abs(inputs[0].astype(np.int16) - np.int16(operation.whole("input_zero")))
        moved = distance + np.int16(operation.whole("output_zero"))
        return [np.clip(moved, *operation.clamp()).astype(np.int8)]
