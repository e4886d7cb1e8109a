"""Elementwise instructions on small boxes with gaps, value by value."""

from itertools import product

import numpy as np

from tests.codegen.isa.machine import Sram, image_at, run, untouched

SHAPES = [(1, 1, 1), (3, 4, 5), (2, 1, 64), (1, 7, 65)]
COST_SHAPE = (5, 6, 7)
"""210 values on 64 lanes: 8 + ceil(210 / 64) = 12 cycles."""
COST_CYCLES = 12


def extremes(sram, shape):
    """Random int8 values with both ends among them."""
    values = sram.int8(*shape)
    values.reshape(-1)[:2] = (-128, 127)[: values.size]
    return values


def unary(mnemonic, shape, registers, seed=0, **fields):
    """Run on one random image; (input, result, cost)."""
    sram = Sram(seed)
    image = extremes(sram, shape)
    got, cost = _run(sram, mnemonic, shape, registers, {"input": image}, fields)
    return image, got, cost


def binary(mnemonic, shape, registers, seed=0):
    """Run on two random images; (input, other, result, cost)."""
    sram = Sram(seed)
    images = {"input": extremes(sram, shape), "other": sram.int8(*shape)}
    got, cost = _run(sram, mnemonic, shape, registers, images, {})
    return images["input"], images["other"], got, cost


def places(shape):
    """Every (y, x, c)."""
    return product(*map(range, shape))


def _run(sram, mnemonic, shape, registers, images, fields):
    size = dict(zip(("out_height", "out_width", "out_channels"), shape, strict=True))
    registers = {**size, **registers}
    for gap, (name, image) in enumerate(images.items()):
        address, row, pixel = sram.place_image(image, row_gap=gap + 1, pixel_gap=gap)
        registers |= {f"{name}_row_pitch": row, f"{name}_pixel_pitch": pixel}
        fields[name] = address
    pixel = shape[2] + 2
    row = shape[1] * pixel + 3
    fields["output"] = sram.space(shape[0] * row)
    registers |= {"output_row_pitch": row, "output_pixel_pitch": pixel}
    after, cost = run(sram, mnemonic, fields, registers)
    assert untouched(sram.data, after, fields["output"], shape, row, pixel)
    got = image_at(after, fields["output"], shape, row, pixel)
    assert got.dtype == np.int8
    return got, cost
