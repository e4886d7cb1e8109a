"""OP_CONV against loops in Python integers, and its cycles by hand."""

import numpy as np
import pytest

from tests.codegen.isa.machine import (
    HARDWARE,
    INPUT_PARALLEL,
    PIXEL_PARALLEL,
    Sram,
    image_at,
    run,
    untouched,
    wide_at,
)
from tests.codegen.isa.oracle import convolution, output_size, requantized, wrapped
from tvm_ext.codegen.errors import OperandError
from tvm_ext.codegen.isa import convolution as convolution_module

# Image, kernel, filters, strides, dilations, pads before, pads behind.
CASES = {
    "point": ((4, 5, 3), (1, 1), 65, (1, 1), (1, 1), (0, 0), (0, 0)),
    "same": ((5, 6, 3), (3, 3), 7, (1, 1), (1, 1), (1, 1), (1, 1)),
    "stride": ((9, 8, 5), (3, 3), 4, (2, 2), (1, 1), (0, 0), (1, 1)),
    "odd": ((7, 9, 2), (2, 3), 3, (3, 2), (2, 1), (2, 1), (0, 3)),
    "wide dilation": ((6, 6, 1), (3, 3), 2, (1, 1), (3, 3), (3, 3), (3, 3)),
    "stem": ((11, 11, 3), (7, 7), 2, (2, 2), (1, 1), (3, 3), (3, 3)),
    "one pixel": ((1, 1, 64), (3, 3), 2, (1, 1), (1, 1), (1, 1), (1, 1)),
    "padding only": ((2, 2, 1), (1, 1), 1, (4, 4), (1, 1), (2, 2), (4, 4)),
}


def prepared(case, seed, row_gap=3, pixel_gap=2):
    shape, kernel, filters, strides, dilations, before, after = CASES[case]
    sram = Sram(seed)
    image, weights = sram.int8(*shape), sram.int8(filters, *kernel, shape[2])
    size = output_size(shape, kernel, strides, dilations, before, after)
    address, row, pixel = sram.place_image(image, row_gap, pixel_gap)
    registers = {
        "in_height": shape[0], "in_width": shape[1], "in_channels": shape[2],
        "out_height": size[0], "out_width": size[1], "out_channels": filters,
        "kernel_height": kernel[0], "kernel_width": kernel[1],
        "stride_height": strides[0], "stride_width": strides[1],
        "dilation_height": dilations[0], "dilation_width": dilations[1],
        "pad_top": before[0], "pad_left": before[1],
        "input_row_pitch": row, "input_pixel_pitch": pixel, "input_zero": -7,
    }  # fmt: skip
    fields = {"input": address, "weights": sram.place(weights)}
    sums = convolution(image, weights, -7, strides, dilations, before, size)
    return sram, fields, registers, sums, (*size, filters)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("patches_at_once", [2**23, 1, 900])
def test_int32_result(case, patches_at_once, monkeypatch):
    # Few patches at once: it is computed row by row, or some rows at a time.
    monkeypatch.setattr(convolution_module, "_PATCH_VALUES", patches_at_once)
    sram, fields, registers, sums, shape = prepared(case, 1)
    fields |= {"output": sram.space(4 * np.prod(shape)), "wide": 1}
    after, (_, macs) = run(sram, "OP_CONV", fields, registers)
    got = wide_at(after, fields["output"], shape)
    assert {place: got[place] for place in sums} == sums
    taps, depth = registers["kernel_height"] * registers["kernel_width"], registers["in_channels"]
    assert macs == np.prod(shape) * taps * depth


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_int8_result(case, per_channel):
    sram, fields, registers, sums, shape = prepared(case, 2)
    biases = sram.rng.integers(-5000, 5000, shape[2]).astype("<i4")
    scales = sram.rng.uniform(0.0005, 0.02, shape[2] if per_channel else 1).astype("<f4")
    row, pixel = shape[1] * (shape[2] + 1) + 5, shape[2] + 1
    output = sram.space(shape[0] * row)
    fields |= {"output": output, "bias": 1, "per_channel": int(per_channel)}
    registers |= {
        "bias_address": sram.place(biases), "scale": float(scales[0]),
        "scales_address": sram.place(scales), "output_row_pitch": row, "output_pixel_pitch": pixel,
        "output_zero": 11, "clamp_low": -100, "clamp_high": 90,
    }  # fmt: skip
    after, _ = run(sram, "OP_CONV", fields, registers)
    got = image_at(after, output, shape, row, pixel)
    for (y, x, c), total in sums.items():
        scale = scales[c] if per_channel else scales[0]
        assert got[y, x, c] == requantized(total + int(biases[c]), scale, 11, -100, 90)
    assert untouched(sram.data, after, output, shape, row, pixel)


@pytest.mark.parametrize("in_place", [False, True])
def test_partial_sums(in_place):
    sram, fields, registers, sums, shape = prepared("same", 3)
    partial = sram.rng.integers(-(2**31), 2**31, shape).astype("<i4")
    address = sram.place(partial)
    output = address if in_place else sram.space(partial.nbytes)
    fields |= {"output": output, "wide": 1, "accumulate": 1}
    registers["partial_address"] = address
    after, _ = run(sram, "OP_CONV", fields, registers)
    got = wide_at(after, output, shape)
    for place, total in sums.items():
        assert got[place] == wrapped(total + int(partial[place]))


@pytest.mark.parametrize("depth", [1023, 1024, 1025, 4096])
def test_largest_sums_are_exact(depth):
    sram = Sram(4)
    weights = np.full((1, depth), -128, np.int8)
    # An odd sum needs every bit of the accumulator.
    image = np.full((1, 1, depth), -128, np.int8)
    image[0, 0, 0], weights[0, 0] = 127, 127
    address, row, pixel = sram.place_image(image)
    fields = {
        "input": address, "weights": sram.place(weights), "output": sram.space(4), "wide": 1,
    }  # fmt: skip
    registers = dict.fromkeys(
        ("in_height", "in_width", "out_height", "out_width", "out_channels"), 1
    )
    registers |= {"in_channels": depth, "input_row_pitch": row, "input_pixel_pitch": pixel}
    after, _ = run(sram, "OP_CONV", fields, registers)
    assert wide_at(after, fields["output"], (1,))[0] == (depth - 1) * 128 * 128 + 127 * 127


# 5 x 6 pixels, 3 x 3 taps, 3 input channels, 70 filters.
@pytest.mark.parametrize(
    ("accelerator", "cycles"),
    [
        (HARDWARE, 1628),  # 8 + 30 * 9 * 3 * ceil(70 / 64)
        (INPUT_PARALLEL, 18908),  # 8 + 30 * 9 * 70 * ceil(3 / 64)
        (PIXEL_PARALLEL, 1088),  # 8 + ceil(30 / 4) * 9 * 3 * ceil(70 / 16)
    ],
)
def test_cycles(accelerator, cycles):
    sram, fields, registers, _, shape = prepared("same", 5)
    registers["out_channels"] = 70
    fields |= {"weights": sram.place(sram.int8(70, 3, 3, 3)), "output": sram.space(8400), "wide": 1}
    assert shape[:2] == (5, 6)
    cost = run(sram, "OP_CONV", fields, registers, accelerator)[1]
    assert cost == (cycles, 5 * 6 * 9 * 3 * 70)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"in_channels": 0}, "in_channels is 0; allowed: 1 or more"),
        ({"stride_width": 0}, "stride_width is 0; allowed: 1 or more"),
        ({"kernel_height": 257}, "kernel_height is 257; allowed: 1 to 256"),
        ({"clamp_low": 5, "clamp_high": 4}, "clamp_low is 5, above clamp_high, which is 4"),
        ({"output_pixel_pitch": 6}, "parts of output fall on each other"),
    ],
)
def test_refused_registers(change, message):
    sram, fields, registers, _, shape = prepared("same", 6)
    registers |= {"output_row_pitch": 6 * shape[2], "output_pixel_pitch": shape[2], **change}
    with pytest.raises(OperandError, match=message) as caught:
        run(sram, "OP_CONV", {**fields, "output": sram.space(500)}, registers)
    assert caught.value.pc == len(registers) + 1


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_factor_that_is_not_finite_is_refused(value):
    sram, fields, registers, _, shape = prepared("point", 7)
    scales = np.full(shape[2], 0.01, "<f4")
    scales[3] = value
    registers |= {
        "scales_address": sram.place(scales), "output_row_pitch": 5 * shape[2],
        "output_pixel_pitch": shape[2],
    }  # fmt: skip
    fields |= {"output": sram.space(4 * 5 * shape[2]), "per_channel": 1}
    with pytest.raises(OperandError, match="scales_address is infinite or not a number"):
        run(sram, "OP_CONV", fields, registers)


def test_a_result_on_its_input_is_refused():
    sram, fields, registers, _, shape = prepared("point", 8)
    registers |= {"output_row_pitch": 5 * shape[2], "output_pixel_pitch": shape[2]}
    with pytest.raises(OperandError, match=r"falls on input .* in place are allowed: partial sums"):
        run(sram, "OP_CONV", {**fields, "output": fields["input"]}, registers)


@pytest.mark.parametrize("channel", [0, 3, 6])
def test_one_channel_of_a_depthwise_layer(channel):
    # Software depthwise: one filter at a time, its input between those of other channels.
    sram = Sram(9)
    image, weights = sram.int8(6, 5, 7), sram.int8(7, 3, 3)
    address, row, pixel = sram.place_image(image)
    output = sram.space(4 * 3 * 7)
    registers = {
        "in_height": 6, "in_width": 5, "in_channels": 1, "out_height": 4, "out_width": 3,
        "out_channels": 1, "kernel_height": 3, "kernel_width": 3, "input_row_pitch": row,
        "input_pixel_pitch": pixel, "output_row_pitch": 21, "output_pixel_pitch": 7, "scale": 0.01,
    }  # fmt: skip
    fields = {
        "input": address + channel, "weights": sram.place(weights) + 9 * channel,
        "output": output + channel,
    }  # fmt: skip
    after, cost = run(sram, "OP_CONV", fields, registers)
    got = image_at(after, output + channel, (4, 3, 1), 21, 7)
    one = weights[channel][np.newaxis, :, :, np.newaxis]
    for place, total in convolution(
        image[:, :, channel : channel + 1], one, 0, size=(4, 3)
    ).items():
        assert got[place] == requantized(total, 0.01)
    assert untouched(sram.data, after, output + channel, (4, 3, 1), 21, 7)
    assert cost == (116, 108)  # 8 + 12 * 9 * 1 * ceil(1 / 64): one of 64 PEs works
