"""OP_E_SHIFT: requantisation as an instruction of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.isa.definition import Field, Operands, define
from tvm_ext.codegen.isa.elementwise import INPUT, OUTPUT, SHAPE_REGISTERS, Elementwise
from tvm_ext.codegen.isa.layer import (
    OUTPUT_REGISTERS,
    PER_CHANNEL,
    REQUANTIZE_REGISTERS,
    extra_reads,
    finish,
    result,
)
from tvm_ext.codegen.isa.operand import dense
from tvm_ext.codegen.isa.operation import Operation


@define
class OpEShift(Elementwise):
    """int32 sums, or int8 values of another scale, to int8. A factor 2**-n shifts by n bits."""

    mnemonic = "OP_E_SHIFT"
    opcode = 0x36
    summary = "scales to int8: requantisation, or a shift where the factor is a power of two"
    inputs, output = "int32 or int8", "int8"
    meaning = (
        "sum := input, or input - input_zero if it is narrow; "
        "output := clamp(round(float32(sum) * scale[c]) + output_zero)"
    )
    fields = (
        INPUT,
        OUTPUT,
        PER_CHANNEL,
        Field("narrow", 1, "1: the input is int8 with its pitches; 0: it is int32, dense HWC"),
    )
    registers = (
        *SHAPE_REGISTERS, "input_row_pitch", "input_pixel_pitch", "input_zero", *OUTPUT_REGISTERS,
        *REQUANTIZE_REGISTERS,
    )  # fmt: skip

    in_place = ("input",)

    def operands(self, operation: Operation) -> Operands:
        shape, fields = self.shape(operation), operation.fields
        if fields["narrow"]:
            source = operation.image("input", fields["input"], shape)
        else:
            source = dense("input", fields["input"], shape, "int32")
        return Operands((source, *extra_reads(operation, shape)), (result(operation, shape),))

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        sums, *extra = inputs
        if operation.fields["narrow"]:
            sums = sums.astype(np.int32) - operation.whole("input_zero")
        return [finish(operation, sums, iter(extra))]
