"""OP_E_SHIFT value by value, and its cycles by hand."""

import numpy as np
import pytest

from tests.codegen.isa.elementwise import COST_CYCLES, COST_SHAPE, SHAPES, places, unary
from tests.codegen.isa.machine import Sram, image_at, run
from tests.codegen.isa.oracle import requantized


@pytest.mark.parametrize("shape", [*SHAPES, COST_SHAPE])
@pytest.mark.parametrize("per_channel", [False, True])
def test_int32_input(shape, per_channel):
    sram = Sram(per_channel)
    sums = sram.rng.integers(-(2**31), 2**31, shape).astype("<i4")
    scales = sram.rng.uniform(1e-9, 1e-7, shape[2] if per_channel else 1).astype("<f4")
    row, pixel = shape[1] * shape[2] + 1, shape[2]
    registers = dict(zip(("out_height", "out_width", "out_channels"), shape, strict=True)) | {
        "scale": float(scales[0]), "scales_address": sram.place(scales), "output_zero": 7,
        "output_row_pitch": row, "output_pixel_pitch": pixel, "clamp_low": -90,
    }  # fmt: skip
    fields = {
        "input": sram.place(sums), "output": sram.space(shape[0] * row),
        "per_channel": int(per_channel),
    }  # fmt: skip
    after, cost = run(sram, "OP_E_SHIFT", fields, registers)
    got = image_at(after, fields["output"], shape, row, pixel)
    for y, x, c in places(shape):
        scale = scales[c] if per_channel else scales[0]
        assert got[y, x, c] == requantized(int(sums[y, x, c]), scale, 7, low=-90)
    if shape == COST_SHAPE:
        assert cost == (COST_CYCLES, 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_int8_input(shape):
    registers = {"scale": 1.37, "input_zero": 12, "output_zero": -9}
    image, got, _ = unary("OP_E_SHIFT", shape, registers, narrow=1)
    for place in places(shape):
        assert got[place] == requantized(int(image[place]) - 12, 1.37, -9)


def test_halves_go_to_the_even_neighbour():
    sram = Sram(0)
    sums = np.array([-5, -3, -1, 1, 3, 5, 2**24 + 1], "<i4")
    fields = {"input": sram.place(sums), "output": sram.space(8)}
    registers = {
        "out_height": 1, "out_width": 1, "out_channels": 7, "scale": 0.5, "output_pixel_pitch": 7,
    }  # fmt: skip
    after, _ = run(sram, "OP_E_SHIFT", fields, registers)
    got = after[fields["output"] : fields["output"] + 7].view(np.int8)
    assert got.tolist() == [-2, -2, 0, 0, 2, 2, 127]
