"""OP_E32_ADD: the sum of two int32 tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.isa.definition import Operands, define
from tvm_ext.codegen.isa.elementwise import INPUT, OTHER, OUTPUT, SHAPE_REGISTERS, Elementwise
from tvm_ext.codegen.isa.operand import dense
from tvm_ext.codegen.isa.operation import Operation


@define
class OpE32Add(Elementwise):
    """Partial sums that two convolutions left; all three are dense HWC."""

    mnemonic = "OP_E32_ADD"
    opcode = 0x34
    summary = "adds two int32 tensors of the same shape"
    inputs, output = "int32, int32", "int32"
    meaning = "output := input + other, wrapping"
    fields = (INPUT, OTHER, OUTPUT)
    registers = SHAPE_REGISTERS

    def operands(self, operation: Operation) -> Operands:
        shape = self.shape(operation)
        first, second, total = (
            dense(name, operation.fields[name], shape, "int32")
            for name in ("input", "other", "output")
        )
        return Operands((first, second), (total,))

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [inputs[0] + inputs[1]]
