"""OP_DEPTH_CONV: depthwise Conv2D, optionally with requantisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa.costs import depth_conv_cycles
from tvm_ext.codegen.isa.definition import Definition, Operands, Work, define
from tvm_ext.codegen.isa.layer import (
    ADDRESSES,
    BIAS,
    OUTPUT_REGISTERS,
    PER_CHANNEL,
    REQUANTIZE_REGISTERS,
    WIDE,
    extra_reads,
    finish,
    result,
)
from tvm_ext.codegen.isa.operand import dense
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.window import WINDOW_REGISTERS, Window


@define
class OpDepthConv(Definition):
    """One filter a channel; weights [out_channels][kernel_height][kernel_width]."""

    mnemonic = "OP_DEPTH_CONV"
    opcode = 0x12
    summary = "depthwise Conv2D, optionally combined with requantisation"
    inputs, output = "int8", "int32 or int8"
    meaning = (
        "as OP_CONV with sum := bias[c] + sum over i, j of input[y*stride + i*dilation - pad_top, "
        "likewise x, c] * weights[c, i, j]"
    )
    cost = "fill_cycles + ceil(pixels / pixel_parallel) * taps * ceil(out_channels / lanes)"
    fields = (*ADDRESSES, BIAS, PER_CHANNEL, WIDE)
    registers = (
        *WINDOW_REGISTERS, "out_channels", "input_row_pitch", "input_pixel_pitch", "input_zero",
        "bias_address", *OUTPUT_REGISTERS, *REQUANTIZE_REGISTERS,
    )  # fmt: skip

    def missing_in(self, accelerator: Accelerator) -> str:
        if accelerator.depthwise == "hardware":
            return ""
        return f"depthwise is {accelerator.depthwise!r}; allowed: hardware"

    def operands(self, operation: Operation) -> Operands:
        window, fields = Window.of(operation), operation.fields
        channels = operation.size("out_channels")
        shape = (window.out_height, window.out_width, channels)
        image = (window.in_height, window.in_width, channels)
        reads = (
            operation.image("input", fields["input"], image),
            dense("weights", fields["weights"], (1, channels, window.taps), "int8"),
            *extra_reads(operation, shape),
        )
        return Operands(reads, (result(operation, shape),))

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        window, (image, weights, *extra) = Window.of(operation), inputs
        image, taps = image.astype(np.int32), weights[0].astype(np.int32).T
        padding = np.int32(operation.whole("input_zero"))
        sums = np.zeros((window.out_height, window.out_width, image.shape[2]), np.int32)
        # Padding counts like everything else; what a tap doesn't take from it is taken back.
        sums += padding * taps.sum(0, dtype=np.int32)
        for (i, j), tap in zip(window.taps_at(), taps, strict=True):
            if met := window.meets(i, j):
                sums[met[0], met[1]] += (image[met[2], met[3]] - padding) * tap
        return [finish(operation, sums, iter(extra))]

    def work(self, operation: Operation, accelerator: Accelerator) -> Work:
        window, channels = Window.of(operation), operation.size("out_channels")
        return Work(
            depth_conv_cycles(accelerator, window.pixels, window.taps, channels),
            window.pixels * window.taps * channels,
        )
