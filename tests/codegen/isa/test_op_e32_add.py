"""OP_E32_ADD in Python integers, and its cycles by hand."""

import numpy as np
import pytest

from tests.codegen.isa.elementwise import COST_CYCLES, COST_SHAPE, SHAPES, places
from tests.codegen.isa.machine import Sram, run, wide_at
from tests.codegen.isa.oracle import wrapped


@pytest.mark.parametrize("shape", [*SHAPES, COST_SHAPE])
@pytest.mark.parametrize("in_place", [False, True])
def test_result_and_cycles(shape, in_place):
    sram = Sram(in_place)
    first, second = (sram.rng.integers(-(2**31), 2**31, shape).astype("<i4") for _ in range(2))
    fields = {"input": sram.place(first), "other": sram.place(second)}
    fields["output"] = fields["input"] if in_place else sram.space(first.nbytes)
    registers = dict(zip(("out_height", "out_width", "out_channels"), shape, strict=True))
    after, cost = run(sram, "OP_E32_ADD", fields, registers)
    got = wide_at(after, fields["output"], shape)
    for place in places(shape):
        assert got[place] == wrapped(int(first[place]) + int(second[place]))
    if shape == COST_SHAPE:
        assert cost == (COST_CYCLES, 0)


def test_values_next_to_the_ends_wrap():
    sram = Sram(1)
    fields = {
        "input": sram.place(np.array([2**31 - 1, -(2**31)], "<i4")),
        "other": sram.place(np.array([1, -1], "<i4")),
        "output": sram.space(8),
    }
    registers = {"out_height": 1, "out_width": 1, "out_channels": 2}
    after, _ = run(sram, "OP_E32_ADD", fields, registers)
    assert wide_at(after, fields["output"], (2,)).tolist() == [-(2**31), 2**31 - 1]
