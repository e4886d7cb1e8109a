"""OP_C_MAX: the larger of each two int8 values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.isa.definition import define
from tvm_ext.codegen.isa.elementwise import Binary
from tvm_ext.codegen.isa.operation import Operation


@define
class OpCMax(Binary):
    """Both inputs and the result have the same scale and zero point."""

    mnemonic = "OP_C_MAX"
    opcode = 0x32
    summary = "compares two tensors of the same shape, writes the maximum values"
    meaning = "output := max(input, other)"

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [np.maximum(inputs[0], inputs[1])]
