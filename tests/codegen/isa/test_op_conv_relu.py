"""OP_CONV_RELU against loops in Python integers, and its cycles by hand."""

import numpy as np
import pytest

from tests.codegen.isa.machine import HARDWARE, INPUT_PARALLEL, Sram, image_at, run
from tests.codegen.isa.oracle import convolution, requantized


@pytest.mark.parametrize(("zero", "low", "high"), [(-128, -128, 127), (-3, -128, 40), (0, 5, 127)])
@pytest.mark.parametrize("accumulate", [False, True])
def test_result(zero, low, high, accumulate):
    sram = Sram(zero + 200 + accumulate)
    image, weights = sram.int8(6, 5, 4), sram.int8(5, 3, 3, 4)
    address, row, pixel = sram.place_image(image)
    partial = sram.rng.integers(-20000, 20000, (4, 3, 5)).astype("<i4")
    registers = {
        "in_height": 6, "in_width": 5, "in_channels": 4, "out_height": 4, "out_width": 3,
        "out_channels": 5, "kernel_height": 3, "kernel_width": 3, "input_row_pitch": row,
        "input_pixel_pitch": pixel, "output_row_pitch": 15, "output_pixel_pitch": 5,
        "scale": 0.0015, "output_zero": zero, "clamp_low": low, "clamp_high": high,
        "partial_address": sram.place(partial),
    }  # fmt: skip
    fields = {
        "input": address, "weights": sram.place(weights), "output": sram.space(60),
        "accumulate": int(accumulate),
    }  # fmt: skip
    after, _ = run(sram, "OP_CONV_RELU", fields, registers)
    got = image_at(after, fields["output"], (4, 3, 5), 15, 5)
    for (y, x, c), total in convolution(image, weights, 0, size=(4, 3)).items():
        total += int(partial[y, x, c]) if accumulate else 0
        assert got[y, x, c] == requantized(total, 0.0015, zero, max(low, zero), high)


# 49 pixels, 1 tap, 65 input channels, 64 filters.
@pytest.mark.parametrize(
    ("accelerator", "cycles"),
    [
        (HARDWARE, 3193),  # 8 + 49 * 65 * ceil(64 / 64)
        (INPUT_PARALLEL, 6280),  # 8 + 49 * 64 * ceil(65 / 64)
    ],
)
def test_cycles(accelerator, cycles):
    sram = Sram(1)
    address, row, pixel = sram.place_image(sram.int8(7, 7, 65))
    registers = {
        "in_height": 7, "in_width": 7, "in_channels": 65, "out_height": 7, "out_width": 7,
        "out_channels": 64, "input_row_pitch": row, "input_pixel_pitch": pixel,
        "output_row_pitch": 7 * 64, "output_pixel_pitch": 64,
    }  # fmt: skip
    fields = {
        "input": address, "weights": sram.place(sram.int8(64, 65)), "output": sram.space(49 * 64),
    }  # fmt: skip
    cost = run(sram, "OP_CONV_RELU", fields, registers, accelerator)[1]
    assert cost == (cycles, np.prod([49, 65, 64]))
