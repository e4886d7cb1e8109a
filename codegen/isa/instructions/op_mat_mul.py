"""OP_MAT_MUL: matrix multiplication, optionally with requantisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa.arithmetic import exact_dtype, product_sums
from tvm_ext.codegen.isa.costs import conv_cycles
from tvm_ext.codegen.isa.definition import Definition, Operands, Work, define
from tvm_ext.codegen.isa.layer import (
    ACCUMULATE,
    ADDRESSES,
    BIAS,
    PER_CHANNEL,
    REQUANTIZE_REGISTERS,
    WIDE,
    extra_reads,
    finish,
    result,
)
from tvm_ext.codegen.isa.operand import SRAM, Operand, dense
from tvm_ext.codegen.isa.operation import Operation


@define
class OpMatMul(Definition):
    """M = out_height rows of K = in_channels values, times N = out_channels columns [N][K]."""

    mnemonic = "OP_MAT_MUL"
    opcode = 0x13
    summary = "matrix multiplication, optionally combined with requantisation"
    inputs, output = "int8", "int32 or int8"
    meaning = (
        "sum := bias[n] + partial[m, n] + sum over k of input[m, k] * weights[n, k], int32, "
        "wrapping; output := sum, or requantised as by OP_CONV"
    )
    cost = (
        "fill_cycles + ceil(M / pixel_parallel) * (output-parallel: K * ceil(N / lanes); "
        "input-parallel: N * ceil(K / lanes))"
    )
    fields = (*ADDRESSES, BIAS, PER_CHANNEL, WIDE, ACCUMULATE)
    registers = (
        "out_height", "in_channels", "out_channels", "input_row_pitch", "output_row_pitch",
        "bias_address", "partial_address", *REQUANTIZE_REGISTERS,
    )  # fmt: skip

    in_place = ("partial sums",)

    def operands(self, operation: Operation) -> Operands:
        rows, depth, columns = self._sizes(operation)
        fields, shape = operation.fields, (rows, 1, columns)
        pitch, out_pitch = operation.whole("input_row_pitch"), operation.whole("output_row_pitch")
        reads = (
            Operand("input", SRAM, fields["input"], (rows, 1, depth), pitch, 0, "int8"),
            dense("weights", fields["weights"], (1, columns, depth), "int8"),
            *extra_reads(operation, shape),
        )
        narrow = Operand("output", SRAM, fields["output"], shape, out_pitch, 0, "int8")
        return Operands(reads, (result(operation, shape) if fields["wide"] else narrow,))

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        left, right, *extra = inputs
        dtype = exact_dtype(left.shape[2])
        sums = product_sums(left[:, 0].astype(dtype), right[0].astype(dtype))
        return [finish(operation, sums[:, np.newaxis], iter(extra))]

    def work(self, operation: Operation, accelerator: Accelerator) -> Work:
        rows, depth, columns = self._sizes(operation)
        return Work(conv_cycles(accelerator, rows, 1, depth, columns), rows * depth * columns)

    def _sizes(self, operation: Operation) -> tuple[int, int, int]:
        size = operation.size
        return size("out_height"), size("in_channels"), size("out_channels")
