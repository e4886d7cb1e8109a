"""The convolution that OP_CONV and OP_CONV_RELU share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa.arithmetic import exact_dtype, product_sums
from tvm_ext.codegen.isa.costs import conv_cycles
from tvm_ext.codegen.isa.definition import Definition, Operands, Work
from tvm_ext.codegen.isa.layer import (
    OUTPUT_REGISTERS,
    REQUANTIZE_REGISTERS,
    extra_reads,
    finish,
    result,
)
from tvm_ext.codegen.isa.operand import dense
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.window import WINDOW_REGISTERS, Window

_PATCH_VALUES = 2**23
"""About as many values of patches exist at once."""


class Convolution(Definition):
    """Conv2D of one tile; weights [out_channels][kernel_height][kernel_width][in_channels]."""

    relu: ClassVar[bool]
    cost = (
        "fill_cycles + ceil(pixels / pixel_parallel) * taps * (output-parallel: in_channels * "
        "ceil(out_channels / lanes); input-parallel: out_channels * ceil(in_channels / lanes))"
    )
    registers = (
        *WINDOW_REGISTERS, "in_channels", "out_channels", "input_row_pitch", "input_pixel_pitch",
        "input_zero", "bias_address", "partial_address", *OUTPUT_REGISTERS, *REQUANTIZE_REGISTERS,
    )  # fmt: skip

    in_place = ("partial sums",)

    def operands(self, operation: Operation) -> Operands:
        window, fields = Window.of(operation), operation.fields
        depth, filters = operation.size("in_channels"), operation.size("out_channels")
        shape = (window.out_height, window.out_width, filters)
        reads = (
            operation.image("input", fields["input"], (window.in_height, window.in_width, depth)),
            dense("weights", fields["weights"], (filters, window.taps, depth), "int8"),
            *extra_reads(operation, shape),
        )
        return Operands(reads, (result(operation, shape),))

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        window, (image, weights, *extra) = Window.of(operation), inputs
        padding = operation.whole("input_zero")
        matrix = weights.reshape(len(weights), -1)
        dtype = exact_dtype(matrix.shape[1])
        matrix = matrix.astype(dtype)
        sums = np.empty((window.out_height, window.out_width, len(weights)), np.int32)
        step = max(1, _PATCH_VALUES // (window.out_width * matrix.shape[1]))
        for first in range(0, window.out_height, step):
            part = window.rows(first, min(step, window.out_height - first))
            rows = sums[first : first + part.out_height]
            product = product_sums(part.patches(image, padding, dtype), matrix)
            rows[...] = product.reshape(rows.shape)
        return [finish(operation, sums, iter(extra), relu=self.relu)]

    def work(self, operation: Operation, accelerator: Accelerator) -> Work:
        window = Window.of(operation)
        depth, filters = operation.size("in_channels"), operation.size("out_channels")
        return Work(
            conv_cycles(accelerator, window.pixels, window.taps, depth, filters),
            window.pixels * window.taps * depth * filters,
        )
