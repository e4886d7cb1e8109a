"""OP_DMA_READ: bytes against loops, and its cycles by hand."""

import numpy as np
import pytest

from tests.codegen.streams import CONSTANTS, run, write
from tvm_ext.codegen.errors import OperandError
from tvm_ext.codegen.isa import Unit, instruction, set_register

# rank, bytes, rows, planes, strides in memory (row, plane) and in SRAM, cycles by hand.
CASES = {
    "one row": (1, 100, 9, 9, (0, 0), (0, 0), 71),  # 64 + ceil(100 / 16)
    "bus width": (1, 96, 1, 1, (0, 0), (0, 0), 70),  # 64 + 96 / 16
    "rows": (2, 24, 4, 9, (100, 0), (32, 0), 72),  # 64 + 4 * ceil(24 / 16)
    "rows that touch": (2, 24, 4, 9, (24, 0), (40, 0), 70),  # 64 + ceil(4 * 24 / 16)
    "planes": (3, 20, 3, 2, (32, 320), (20, 64), 76),  # 64 + 6 * ceil(20 / 16)
    "planes that touch": (3, 20, 3, 2, (20, 60), (24, 100), 72),  # 64 + ceil(120 / 16)
    "a row repeated": (2, 24, 4, 1, (0, 0), (24, 0), 72),  # 64 + 4 * ceil(24 / 16)
    "interleaved": (3, 2, 3, 2, (8, 4), (4, 2), 70),  # 64 + 6 * ceil(2 / 16)
}


def configured(unit, rows, planes, memory, sram):
    values = {
        "rows": rows, "planes": planes, "memory_row_stride": memory[0],
        "memory_plane_stride": memory[1], "sram_row_stride": sram[0], "sram_plane_stride": sram[1],
    }  # fmt: skip
    return [set_register(unit, name, value) for name, value in values.items()]


@pytest.mark.parametrize("case", CASES)
def test_bytes_and_cycles(case):
    rank, size, rows, planes, memory, sram, cycles = CASES[case]
    expected = {}
    for p in range(planes if rank == 3 else 1):
        for r in range(rows if rank >= 2 else 1):
            for b in range(size):
                value = CONSTANTS[5 + p * memory[1] + r * memory[0] + b]
                expected[64 + p * sram[1] + r * sram[0] + b] = value
    end = max(expected) + 1
    # Bytes between the rows have to be written too before everything is stored.
    items = [
        instruction("OP_DMA_READ", memory=0, sram=0, bytes=end, rank=1),
        *configured(Unit.LOAD, rows, planes, memory, sram),
        instruction("OP_DMA_READ", memory=5, sram=64, bytes=size, rank=rank, push_next=True),
        set_register(Unit.COMPUTE, "scale", 1.0, pop_prev=True, push_next=True),
        write(0, end, 1024, pop_prev=True),
    ]
    result, after = run(*items)
    wanted = np.frombuffer(CONSTANTS[:end], np.uint8).copy()
    wanted[list(expected)] = list(expected.values())
    np.testing.assert_array_equal(after[1024 : 1024 + end], wanted)
    place = int(np.flatnonzero(result.events.pc == 7)[0])
    assert result.events.end[place] - result.events.start[place] == cycles
    assert result.events.memory_bytes[place] == result.events.sram_bytes[place] == len(expected)


@pytest.mark.parametrize(
    ("fields", "rows", "message"),
    [
        ({"bytes": 4, "rank": 0}, 1, "field rank is 0; allowed: 1, 2, 3"),
        ({"bytes": 0, "rank": 1}, 1, "field bytes is 0; allowed: 1 or more"),
        ({"bytes": 4, "rank": 2}, 0, "rows is 0; allowed: 1 or more"),
        ({"bytes": 4, "rank": 2}, 2, "parts of sram fall on each other"),
    ],
)
def test_refusals(fields, rows, message):
    items = configured(Unit.LOAD, rows, 1, (4, 0), (3, 0))
    with pytest.raises(OperandError, match=message) as caught:
        run(*items, instruction("OP_DMA_READ", **fields))
    assert caught.value.pc == 6
