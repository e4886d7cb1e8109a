"""OP_ACT_LRELU value by value, and its cycles by hand."""

import pytest

from tests.codegen.isa.elementwise import COST_CYCLES, COST_SHAPE, SHAPES, places, unary
from tests.codegen.isa.oracle import requantized


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("positive", "negative"), [(1.0, 0.5), (0.83, 0.0083), (1.7, -0.25)])
def test_result(shape, positive, negative):
    registers = {
        "input_zero": 9, "output_zero": -4, "scale": positive, "negative_scale": negative,
        "clamp_low": -120,
    }  # fmt: skip
    image, got, _ = unary("OP_ACT_LRELU", shape, registers)
    for place in places(shape):
        distance = int(image[place]) - 9
        scale = positive if distance >= 0 else negative
        assert got[place] == requantized(distance, scale, -4, low=-120)


def test_cycles():
    assert unary("OP_ACT_LRELU", COST_SHAPE, {})[2] == (COST_CYCLES, 0)
