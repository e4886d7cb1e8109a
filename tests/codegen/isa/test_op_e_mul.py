"""OP_E_MUL value by value, and its cycles by hand."""

import numpy as np
import pytest

from tests.codegen.isa.elementwise import COST_CYCLES, COST_SHAPE, SHAPES, binary, places
from tests.codegen.isa.machine import Sram, run
from tests.codegen.isa.oracle import clamped, fused
from tvm_ext.codegen.errors import OperandError


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("scale", "zero"), [(0.0078125, 0), (0.0123, -128), (1.0, 5)])
def test_result(shape, scale, zero):
    registers = {
        "scale": scale, "input_zero": -3, "other_zero": 17, "output_zero": zero, "clamp_high": 120,
    }  # fmt: skip
    first, second, got, _ = binary("OP_E_MUL", shape, registers)
    for place in places(shape):
        product = (int(first[place]) + 3) * (int(second[place]) - 17)
        total = round(float(fused(product, np.float32(scale), zero)))
        assert got[place] == clamped(total, high=120)


@pytest.mark.parametrize(("zero", "result"), [(0, 0), (1, 2), (2, 2), (3, 4)])
def test_the_zero_point_is_added_before_rounding(zero, result):
    sram = Sram(0)
    one = np.array([1], np.int8)
    fields = {"input": sram.place(one), "other": sram.place(one), "output": sram.space(1)}
    registers = {
        "out_height": 1, "out_width": 1, "out_channels": 1, "scale": 0.5, "output_zero": zero,
    }  # fmt: skip
    after, _ = run(sram, "OP_E_MUL", fields, registers)
    assert after[fields["output"]] == result


@pytest.mark.parametrize("shape", SHAPES[:2])
def test_values_of_uint8_tensors(shape):
    registers = {
        "scale": 0.0123, "input_zero": -3, "other_zero": 17, "output_zero": -28, "value_shift": 128,
    }  # fmt: skip
    first, second, got, _ = binary("OP_E_MUL", shape, registers)
    for place in places(shape):
        product = (int(first[place]) + 3) * (int(second[place]) - 17)
        assert got[place] == clamped(round(float(fused(product, np.float32(0.0123), 100))) - 128)


def test_large_shifts_are_refused():
    with pytest.raises(OperandError, match="value_shift is 256; allowed: 0 to 255"):
        binary("OP_E_MUL", SHAPES[0], {"value_shift": 256})


def test_cycles():
    assert binary("OP_E_MUL", COST_SHAPE, {})[3] == (COST_CYCLES, 0)
