"""OP_DEPTH_CONV against loops in Python integers, and its cycles by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.isa.machine import HARDWARE, PIXEL_PARALLEL, Sram, image_at, run, wide_at
from tests.codegen.isa.oracle import convolution, output_size, requantized
from tvm_ext.codegen.errors import ProgramError

# Image, kernel, strides, dilations, pads before, pads behind.
CASES = {
    "same": ((5, 6, 65), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    "stride": ((8, 7, 3), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1)),
    "odd": ((7, 9, 4), (5, 2), (1, 3), (1, 2), (4, 1), (0, 2)),
    "point": ((3, 3, 5), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0)),
}


def prepared(case):
    shape, kernel, strides, dilations, before, after = CASES[case]
    sram = Sram(len(case))
    image, weights = sram.int8(*shape), sram.int8(shape[2], *kernel)
    size = output_size(shape, kernel, strides, dilations, before, after)
    address, row, pixel = sram.place_image(image, row_gap=1, pixel_gap=1)
    registers = {
        "in_height": shape[0], "in_width": shape[1], "out_height": size[0], "out_width": size[1],
        "out_channels": shape[2], "kernel_height": kernel[0], "kernel_width": kernel[1],
        "stride_height": strides[0], "stride_width": strides[1],
        "dilation_height": dilations[0], "dilation_width": dilations[1],
        "pad_top": before[0], "pad_left": before[1], "input_row_pitch": row,
        "input_pixel_pitch": pixel, "input_zero": 19,
    }  # fmt: skip
    sums = {}
    for c in range(shape[2]):
        one = image[:, :, c : c + 1], weights[c : c + 1, :, :, np.newaxis]
        found = convolution(*one, 19, strides, dilations, before, size)
        sums |= {(y, x, c): total for (y, x, _), total in found.items()}
    fields = {"input": address, "weights": sram.place(weights)}
    return sram, fields, registers, sums, (*size, shape[2])


@pytest.mark.parametrize("case", CASES)
def test_int32_result(case):
    sram, fields, registers, sums, shape = prepared(case)
    biases = sram.rng.integers(-(2**20), 2**20, shape[2]).astype("<i4")
    registers["bias_address"] = sram.place(biases)
    fields |= {"output": sram.space(4 * np.prod(shape)), "wide": 1, "bias": 1}
    after, (_, macs) = run(sram, "OP_DEPTH_CONV", fields, registers)
    got = wide_at(after, fields["output"], shape)
    for (y, x, c), total in sums.items():
        assert got[y, x, c] == total + biases[c]
    assert macs == len(sums) * registers["kernel_height"] * registers["kernel_width"]


@pytest.mark.parametrize("case", CASES)
def test_int8_result(case):
    sram, fields, registers, sums, shape = prepared(case)
    scales = sram.rng.uniform(0.001, 0.01, shape[2]).astype("<f4")
    row, pixel = shape[1] * shape[2] + 2, shape[2]
    registers |= {
        "scales_address": sram.place(scales), "output_zero": -20, "output_row_pitch": row,
        "output_pixel_pitch": pixel, "clamp_high": 100,
    }  # fmt: skip
    fields |= {"output": sram.space(shape[0] * row), "per_channel": 1}
    after, _ = run(sram, "OP_DEPTH_CONV", fields, registers)
    got = image_at(after, fields["output"], shape, row, pixel)
    for (y, x, c), total in sums.items():
        assert got[y, x, c] == requantized(total, scales[c], -20, high=100)


# 5 x 6 pixels, 3 x 3 taps, 65 channels.
@pytest.mark.parametrize(
    ("accelerator", "cycles"),
    [
        (HARDWARE, 548),  # 8 + 30 * 9 * ceil(65 / 64)
        (PIXEL_PARALLEL, 368),  # 8 + ceil(30 / 4) * 9 * ceil(65 / 16)
    ],
)
def test_cycles(accelerator, cycles):
    sram, fields, registers, _, shape = prepared("same")
    fields |= {"output": sram.space(4 * np.prod(shape)), "wide": 1}
    cost = run(sram, "OP_DEPTH_CONV", fields, registers, accelerator)[1]
    assert cost == (cycles, 30 * 9 * 65)


@pytest.mark.parametrize("depthwise", ["none", "software"])
def test_hardware_without_it_refuses(depthwise):
    sram, fields, registers, _, shape = prepared("point")
    fields |= {"output": sram.space(4 * np.prod(shape)), "wide": 1}
    with pytest.raises(ProgramError, match=f"lacks OP_DEPTH_CONV: depthwise is '{depthwise}'"):
        run(sram, "OP_DEPTH_CONV", fields, registers, replace(HARDWARE, depthwise=depthwise))
