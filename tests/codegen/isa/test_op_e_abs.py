"""OP_E_ABS value by value, and its cycles by hand."""

import pytest

from tests.codegen.isa.elementwise import COST_CYCLES, COST_SHAPE, SHAPES, places, unary
from tests.codegen.isa.oracle import clamped


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("zero", "out_zero", "high"), [(0, 0, 127), (-128, -128, 127), (5, 6, 80)])
def test_result(shape, zero, out_zero, high):
    registers = {"input_zero": zero, "output_zero": out_zero, "clamp_high": high}
    image, got, _ = unary("OP_E_ABS", shape, registers)
    for place in places(shape):
        assert got[place] == clamped(abs(int(image[place]) - zero) + out_zero, high=high)


def test_cycles():
    assert unary("OP_E_ABS", COST_SHAPE, {})[2] == (COST_CYCLES, 0)
