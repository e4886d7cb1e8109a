"""OP_POOL against loops in Python integers, and its cycles by hand."""

from itertools import product

import numpy as np
import pytest

from tests.codegen.isa.machine import HARDWARE, PIXEL_PARALLEL, Sram, image_at, run
from tests.codegen.isa.oracle import clamped, output_size, requantized
from tvm_ext.codegen.errors import OperandError

# Image, kernel, strides, pads before, pads behind.
CASES = {
    "two": ((6, 8, 65), (2, 2), (2, 2), (0, 0), (0, 0)),
    "same": ((5, 6, 3), (3, 3), (1, 1), (1, 1), (1, 1)),
    "odd": ((7, 9, 4), (3, 2), (2, 3), (2, 1), (0, 1)),
    "global": ((7, 7, 5), (7, 7), (1, 1), (0, 0), (0, 0)),
}


def prepared(case):
    shape, kernel, strides, before, after = CASES[case]
    sram = Sram(len(case))
    image = sram.int8(*shape)
    size = output_size(shape, kernel, strides, (1, 1), before, after)
    address, row, pixel = sram.place_image(image, row_gap=2, pixel_gap=1)
    out = (*size, shape[2])
    registers = {
        "in_height": shape[0], "in_width": shape[1], "out_height": size[0], "out_width": size[1],
        "out_channels": shape[2], "kernel_height": kernel[0], "kernel_width": kernel[1],
        "stride_height": strides[0], "stride_width": strides[1], "pad_top": before[0],
        "pad_left": before[1], "input_row_pitch": row, "input_pixel_pitch": pixel,
        "output_row_pitch": size[1] * shape[2], "output_pixel_pitch": shape[2],
    }  # fmt: skip
    windows = {}
    for y, x, c in product(*map(range, out)):
        rows = range(y * strides[0] - before[0], y * strides[0] - before[0] + kernel[0])
        columns = range(x * strides[1] - before[1], x * strides[1] - before[1] + kernel[1])
        windows[y, x, c] = [
            int(image[i, j, c])
            for i in rows
            for j in columns
            if 0 <= i < shape[0] and 0 <= j < shape[1]
        ]
    fields = {"input": address, "output": sram.space(int(np.prod(out)))}
    return sram, fields, registers, windows, out


def result(prepared, kind, extra):
    sram, fields, registers, _, shape = prepared
    after, cost = run(sram, "OP_POOL", {**fields, "kind": kind}, {**registers, **extra})
    return image_at(after, fields["output"], shape, shape[1] * shape[2], shape[2]), cost


@pytest.mark.parametrize("case", CASES)
def test_maximum(case):
    prepared_case = prepared(case)
    got, _ = result(prepared_case, 0, {"clamp_low": -50, "clamp_high": 100})
    for place, window in prepared_case[3].items():
        assert got[place] == clamped(max(window), -50, 100)


@pytest.mark.parametrize("case", CASES)
def test_average(case):
    prepared_case = prepared(case)
    extra = {"scale": 0.137, "input_zero": -21, "output_zero": 13, "clamp_high": 99}
    got, _ = result(prepared_case, 1, extra)
    for place, window in prepared_case[3].items():
        total = sum(value + 21 for value in window)
        assert got[place] == requantized(total, 0.137, 13, high=99)


@pytest.mark.parametrize("case", CASES)
def test_average_without_the_padding(case):
    prepared_case = prepared(case)
    extra = {"scale": 0.31, "other_scale": 0.47, "input_zero": -21, "output_zero": 13}
    got, _ = result(prepared_case, 2, extra)
    for place, window in prepared_case[3].items():
        scale = np.float32(0.31) / (np.float32(0.47) * np.float32(len(window)))
        assert got[place] == requantized(sum(value + 21 for value in window), scale, 13)


# 2 x 2 pixels, 3 x 3 taps.
@pytest.mark.parametrize(
    ("accelerator", "channels", "cycles"),
    [
        (HARDWARE, 64, 44),  # 8 + 4 * 9 * ceil(64 / 64)
        (HARDWARE, 65, 80),  # 8 + 4 * 9 * ceil(65 / 64)
        (PIXEL_PARALLEL, 65, 53),  # 8 + ceil(4 / 4) * 9 * ceil(65 / 16)
    ],
)
def test_cycles(accelerator, channels, cycles):
    sram = Sram(0)
    address, row, pixel = sram.place_image(sram.int8(4, 4, channels))
    registers = {
        "in_height": 4, "in_width": 4, "out_height": 2, "out_width": 2, "out_channels": channels,
        "kernel_height": 3, "kernel_width": 3, "input_row_pitch": row, "input_pixel_pitch": pixel,
        "output_row_pitch": 2 * channels, "output_pixel_pitch": channels,
    }  # fmt: skip
    fields = {"input": address, "output": sram.space(4 * channels)}
    assert run(sram, "OP_POOL", fields, registers, accelerator)[1] == (cycles, 0)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (3, {}, "field kind is 3; allowed: 0, 1, 2"),
        (0, {"pad_top": 9}, "a window lies in the padding alone"),
        (2, {"pad_top": 9}, "a window lies in the padding alone"),
        (2, {"other_scale": 0.0}, r"scale / \(other_scale \* taps\) isn't finite"),
    ],
)
def test_refusals(kind, change, message):
    with pytest.raises(OperandError, match=message):
        result(prepared("same"), kind, change)
