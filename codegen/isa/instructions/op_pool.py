"""OP_POOL: maximum and average over windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa.arithmetic import requantize
from tvm_ext.codegen.isa.costs import depth_conv_cycles
from tvm_ext.codegen.isa.definition import Definition, Field, Operands, Work, define
from tvm_ext.codegen.isa.elementwise import INPUT, OUTPUT
from tvm_ext.codegen.isa.layer import OUTPUT_REGISTERS
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.window import WINDOW_REGISTERS, Window

MAXIMUM, AVERAGE, AVERAGE_INSIDE = 0, 1, 2


@define
class OpPool(Definition):
    """Taps in the padding are left out of the maximum, and add nothing to the sum."""

    mnemonic = "OP_POOL"
    opcode = 0x22
    summary = "maximum or average pooling"
    inputs, output = "int8", "int8"
    meaning = (
        "kind 0: output := clamp(max over taps of input); kind 1: output := clamp(round(float32("
        "sum over taps of (input - input_zero)) * scale) + output_zero); kind 2: as 1 with "
        "float32(scale / float32(other_scale * n)) for scale, n taps inside the tile"
    )
    cost = "fill_cycles + ceil(pixels / pixel_parallel) * taps * ceil(out_channels / lanes)"
    fields = (
        INPUT,
        OUTPUT,
        Field("kind", 2, "0 maximum, 1 average, 2 average without the padding"),
    )
    registers = (
        *WINDOW_REGISTERS, "out_channels", "input_row_pitch", "input_pixel_pitch", "input_zero",
        "output_zero", "scale", "other_scale", "clamp_low", "clamp_high", *OUTPUT_REGISTERS,
    )  # fmt: skip

    def operands(self, operation: Operation) -> Operands:
        if operation.fields["kind"] not in (MAXIMUM, AVERAGE, AVERAGE_INSIDE):
            operation.refuse(f"field kind is {operation.fields['kind']}; allowed: 0, 1, 2")
        window, channels = Window.of(operation), operation.size("out_channels")
        image = (window.in_height, window.in_width, channels)
        shape = (window.out_height, window.out_width, channels)
        return Operands(
            (operation.image("input", operation.fields["input"], image),),
            (operation.image("output", operation.fields["output"], shape),),
        )

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        window, image, kind = Window.of(operation), inputs[0], operation.fields["kind"]
        low, high = operation.clamp()
        pixels = (window.out_height, window.out_width, 1)
        taken = np.zeros(pixels, np.int32)
        if kind == MAXIMUM:
            best = np.full((*pixels[:2], image.shape[2]), -128, np.int8)
        else:
            sums = np.zeros((*pixels[:2], image.shape[2]), np.int32)
            distance = image.astype(np.int32) - operation.whole("input_zero")
        for i, j in window.taps_at():
            if met := window.meets(i, j):
                taken[met[0], met[1]] += 1
                if kind == MAXIMUM:
                    part = best[met[0], met[1]]
                    np.maximum(part, image[met[2], met[3]], out=part)
                else:
                    sums[met[0], met[1]] += distance[met[2], met[3]]
        if kind != AVERAGE and not taken.all():
            operation.refuse("a window lies in the padding alone")
        if kind == MAXIMUM:
            return [np.clip(best, low, high)]
        scale = np.float32(operation.registers["scale"])
        if kind == AVERAGE_INSIDE:
            scale = _divided(operation, scale, taken)
        return [requantize(sums, scale, operation.whole("output_zero"), low, high)]

    def work(self, operation: Operation, accelerator: Accelerator) -> Work:
        window, channels = Window.of(operation), operation.size("out_channels")
        return Work(depth_conv_cycles(accelerator, window.pixels, window.taps, channels))


def _divided(operation: Operation, scale: np.float32, taken: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        factors: np.ndarray = scale / (
            np.float32(operation.registers["other_scale"]) * taken.astype(np.float32)
        )
    if not np.isfinite(factors).all():
        operation.refuse("scale / (other_scale * taps) isn't finite")
    return factors
