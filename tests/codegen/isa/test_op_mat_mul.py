"""OP_MAT_MUL against loops in Python integers, and its cycles by hand."""

import numpy as np
import pytest

from tests.codegen.isa.machine import (
    HARDWARE,
    INPUT_PARALLEL,
    PIXEL_PARALLEL,
    Sram,
    image_at,
    run,
    wide_at,
)
from tests.codegen.isa.oracle import requantized, wrapped

SIZES = [(1, 63, 10), (2, 64, 64), (5, 65, 3), (3, 1, 1), (2, 1025, 2)]


def prepared(rows, depth, columns, gap=0):
    sram = Sram(rows * depth + columns)
    left, right = sram.int8(rows, depth), sram.int8(columns, depth)
    address, row, _ = sram.place_image(left[:, np.newaxis], row_gap=gap)
    registers = {
        "out_height": rows, "in_channels": depth, "out_channels": columns, "input_row_pitch": row,
    }  # fmt: skip
    fields = {"input": address, "weights": sram.place(right)}
    sums = {
        (m, n): sum(int(a) * int(b) for a, b in zip(left[m], right[n], strict=True))
        for m in range(rows)
        for n in range(columns)
    }
    return sram, fields, registers, sums


@pytest.mark.parametrize("size", SIZES)
def test_int32_result(size):
    sram, fields, registers, sums = prepared(*size, gap=3)
    shape = (size[0], size[2])
    partial = sram.rng.integers(-(2**31), 2**31, shape).astype("<i4")
    fields |= {"output": sram.space(partial.nbytes), "wide": 1, "accumulate": 1}
    registers["partial_address"] = sram.place(partial)
    after, (_, macs) = run(sram, "OP_MAT_MUL", fields, registers)
    got = wide_at(after, fields["output"], shape)
    for place, total in sums.items():
        assert got[place] == wrapped(total + int(partial[place]))
    assert macs == np.prod(size)


@pytest.mark.parametrize("size", SIZES)
def test_int8_result(size):
    sram, fields, registers, sums = prepared(*size)
    rows, _, columns = size
    biases = sram.rng.integers(-5000, 5000, columns).astype("<i4")
    scales = sram.rng.uniform(0.0005, 0.01, columns).astype("<f4")
    registers |= {
        "bias_address": sram.place(biases), "scales_address": sram.place(scales),
        "output_row_pitch": columns + 7, "output_zero": 3,
    }  # fmt: skip
    fields |= {"output": sram.space(rows * (columns + 7)), "bias": 1, "per_channel": 1}
    after, _ = run(sram, "OP_MAT_MUL", fields, registers)
    got = image_at(after, fields["output"], (rows, 1, columns), columns + 7, 0)
    for (m, n), total in sums.items():
        assert got[m, 0, n] == requantized(total + int(biases[n]), scales[n], 3)


# M = 2, K = 100, N = 70.
@pytest.mark.parametrize(
    ("accelerator", "cycles"),
    [
        (HARDWARE, 408),  # 8 + 2 * 100 * ceil(70 / 64)
        (INPUT_PARALLEL, 288),  # 8 + 2 * 70 * ceil(100 / 64)
        (PIXEL_PARALLEL, 508),  # 8 + ceil(2 / 4) * 100 * ceil(70 / 16)
    ],
)
def test_cycles(accelerator, cycles):
    sram, fields, registers, _ = prepared(2, 100, 70)
    fields |= {"output": sram.space(4 * 140), "wide": 1}
    cost = run(sram, "OP_MAT_MUL", fields, registers, accelerator)[1]
    assert cost == (cycles, 2 * 100 * 70)
