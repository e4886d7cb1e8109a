"""OP_ACT_RELU value by value, and its cycles by hand."""

import pytest

from tests.codegen.isa.elementwise import COST_CYCLES, COST_SHAPE, SHAPES, places, unary


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("zero", "low", "high"), [(0, -128, 127), (-128, -128, 50), (-5, 3, 99)])
def test_result(shape, zero, low, high):
    registers = {"input_zero": zero, "clamp_low": low, "clamp_high": high}
    image, got, _ = unary("OP_ACT_RELU", shape, registers)
    for place in places(shape):
        assert got[place] == min(max(int(image[place]), zero, low), high)


def test_cycles():
    assert unary("OP_ACT_RELU", COST_SHAPE, {})[2] == (COST_CYCLES, 0)
