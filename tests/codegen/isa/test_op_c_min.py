"""OP_C_MIN value by value, and its cycles by hand."""

import pytest

from tests.codegen.isa.elementwise import COST_CYCLES, COST_SHAPE, SHAPES, binary, places


@pytest.mark.parametrize("shape", SHAPES)
def test_result(shape):
    first, second, got, _ = binary("OP_C_MIN", shape, {})
    for place in places(shape):
        assert got[place] == min(first[place], second[place])


def test_cycles():
    assert binary("OP_C_MIN", COST_SHAPE, {})[3] == (COST_CYCLES, 0)
