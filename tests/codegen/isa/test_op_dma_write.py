"""OP_DMA_WRITE: bytes against loops, and its cycles by hand."""

import numpy as np
import pytest

from tests.codegen.isa.test_op_dma_read import CASES, configured
from tests.codegen.streams import CONSTANTS, of_pc, read, run
from tvm_ext.codegen.errors import OperandError
from tvm_ext.codegen.isa import Unit, instruction, set_register

PASS_ON = set_register(Unit.COMPUTE, "scale", 1.0, pop_prev=True, push_next=True)


@pytest.mark.parametrize("case", [name for name in CASES if name != "a row repeated"])
def test_bytes_and_cycles(case):
    rank, size, rows, planes, memory, sram, cycles = CASES[case]
    expected = {}
    for p in range(planes if rank == 3 else 1):
        for r in range(rows if rank >= 2 else 1):
            for b in range(size):
                value = CONSTANTS[64 + p * sram[1] + r * sram[0] + b]
                expected[1029 + p * memory[1] + r * memory[0] + b] = value
    items = [
        read(0, 1024, push_next=True),
        PASS_ON,
        *configured(Unit.STORE, rows, planes, memory, sram),
        instruction("OP_DMA_WRITE", memory=1029, sram=64, bytes=size, rank=rank, pop_prev=True),
    ]
    result, after = run(*items)
    wanted = np.zeros(3072, np.uint8)
    wanted[np.array(list(expected)) - 1024] = list(expected.values())
    np.testing.assert_array_equal(after[1024:], wanted)
    place = of_pc(result, 8)
    assert result.events.end[place] - result.events.start[place] == cycles
    assert result.dma_write_bytes == len(expected)


def test_rows_on_each_other_are_refused():
    items = configured(Unit.STORE, 2, 1, (0, 0), (4, 0))
    last = instruction("OP_DMA_WRITE", memory=1024, bytes=4, rank=2, pop_prev=True)
    with pytest.raises(OperandError, match="parts of memory fall on each other"):
        run(read(push_next=True), PASS_ON, *items, last)
