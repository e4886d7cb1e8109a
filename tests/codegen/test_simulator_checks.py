"""What the simulator refuses, each by a named error with the program counter; nothing hangs."""

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.streams import HARDWARE, program, read, relu, run, shape, write
from tvm_ext.codegen.errors import (
    AddressError,
    CycleBudgetError,
    DeadlockError,
    HazardError,
    MissingTokenError,
    OperandError,
    ProgramError,
    SimulationError,
    UnwrittenReadError,
)
from tvm_ext.codegen.isa import Unit, instruction, set_register
from tvm_ext.codegen.program import Buffer
from tvm_ext.codegen.simulator import simulate

SHAPE = shape(2, 2, 4)
"""Seven OP_SETs: 16 dense values."""


def test_unwritten_sram():
    with pytest.raises(UnwrittenReadError, match="64 bytes, the first at 0x0, have") as caught:
        run(write())
    assert (caught.value.pc, caught.value.mnemonic) == (0, "OP_DMA_WRITE")
    with pytest.raises(UnwrittenReadError, match="of which 1 bytes, the first at 0x4f") as caught:
        run(read(0, 79, push_next=True), *SHAPE, relu(64, 128, pop_prev=True))
    assert caught.value.pc == 8


def test_gaps_of_a_tensor_need_not_be_written():
    # 2 x 2 pixels of 4 channels, 6 bytes apart, loaded pixel by pixel.
    load = [read(6 * n, 4, memory=4 * n, push_next=n == 3) for n in range(4)]
    gaps = [
        set_register(Unit.COMPUTE, "input_pixel_pitch", 6),
        set_register(Unit.COMPUTE, "input_row_pitch", 12),
    ]
    result, memory = run(
        *load,
        *SHAPE,
        *gaps,
        relu(0, 64, pop_prev=True, push_next=True),
        write(64, 16, pop_prev=True),
    )
    assert memory[1024:1040].tolist() == list(range(16))
    assert result.sram_bytes == 16 + 32 + 16


def test_unwritten_memory():
    with pytest.raises(UnwrittenReadError, match="system memory 0x3fe to 0x402, of which 2") as got:
        run(read(0, 4, memory=1022))
    assert got.value.pc == 0
    spill = (Buffer("s", "spill", 1024, (64,), "int8"),)
    # Written by the program itself, and ordered by a token from store to load.
    order = set_register(Unit.COMPUTE, "scale", 1.0, pop_prev=True, push_next=True)
    items = [
        read(push_next=True),
        order,
        write(pop_prev=True, push_next=True),
        read(64, 64, memory=1024, pop_prev=True),
    ]
    assert run(*items, buffers=spill)[0].dma_read_bytes == 128


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (read(4090, 7), "sram takes SRAM 0xffa to 0x1001; allowed: up to 0x1000"),
        (
            read(0, 9, memory=4088),
            "memory takes system memory 0xff8 to 0x1001; allowed: up to 0x10",
        ),
        (read(2**32 - 1, 1), "sram takes SRAM 0xffffffff to 0x100000000"),
    ],
)
def test_addresses(item, message):
    with pytest.raises(AddressError, match=message) as caught:
        run(item)
    assert caught.value.pc == 0


def test_alignment():
    items = [instruction("OP_E32_ADD", input=2, other=64, output=128, pop_prev=True)]
    with pytest.raises(
        AddressError, match="input has int32 values at 0x2; allowed: multiples of 4"
    ):
        run(read(0, 256, push_next=True), *SHAPE, *items)


def test_a_token_that_nobody_pushes():
    with pytest.raises(MissingTokenError, match="no remaining load instruction pushes a token to"):
        run(read(), *SHAPE, relu(0, 64, pop_prev=True))
    with pytest.raises(MissingTokenError, match="no remaining store instruction") as caught:
        run(read(pop_prev=True))
    assert caught.value.pc == 0
    # One push doesn't do for two pops.
    with pytest.raises(MissingTokenError, match="compute waits at pc 9 for load") as caught:
        run(read(push_next=True), *SHAPE, relu(0, 16, pop_prev=True), relu(0, 32, pop_prev=True))
    assert caught.value.pc == 9


def test_tokens_in_a_circle():
    items = [
        read(pop_next=True, push_next=True),
        set_register(Unit.COMPUTE, "scale", 1.0, pop_prev=True, push_prev=True),
    ]
    message = "the units wait for each other: load waits at pc 0 for compute; compute waits at pc 1"
    with pytest.raises(DeadlockError, match=message) as caught:
        run(*items)
    assert not isinstance(caught.value, MissingTokenError)
    assert caught.value.pc == 0


def test_three_units_in_a_circle():
    items = [
        read(pop_prev=True, push_next=True),
        set_register(Unit.COMPUTE, "scale", 1.0, pop_prev=True, push_next=True),
        write(pop_prev=True, push_next=True),
    ]
    message = "load waits at pc 0 for store; compute waits at pc 1 for load; store waits at pc 2"
    with pytest.raises(DeadlockError, match=message):
        run(*items)


def test_cycle_budget():
    assert run(read(), cycle_budget=68)[0].cycles == 68
    with pytest.raises(
        CycleBudgetError, match="ends in cycle 68; the cycle budget is 67"
    ) as caught:
        run(read(), cycle_budget=67)
    assert caught.value.pc == 0


def test_sizes_that_no_machine_finishes_stop_at_once():
    huge = [
        set_register(Unit.COMPUTE, name, 2**32 - 1)
        for name in ("out_height", "out_width", "out_channels", "stride_height", "in_height")
    ]
    with pytest.raises(SimulationError):
        run(*SHAPE, *huge, instruction("OP_DEPTH_CONV", wide=1))
    with pytest.raises(CycleBudgetError, match="the cycle budget is 10000000000"):
        run(*SHAPE, *huge, relu())


HAZARDS = {
    "read before it is loaded": [
        read(), read(64, push_next=True), *SHAPE,
        set_register(Unit.COMPUTE, "scale", 1.0, pop_prev=True), relu(64, 128), read(64),
    ],
    "loaded over an input": [
        read(push_next=True), *SHAPE, relu(0, 64, pop_prev=True), read(8, 4),
    ],
    "loaded over a result": [
        read(push_next=True), *SHAPE, relu(0, 64, pop_prev=True), read(79, 1),
    ],
    "stored before it is computed": [
        read(0, 128, push_next=True), *SHAPE, relu(0, 64, pop_prev=True, push_next=True),
        relu(0, 80), write(64, 32, pop_prev=True),
    ],
    "computed over what is stored": [
        read(0, 128, push_next=True), *SHAPE, relu(0, 64, pop_prev=True, push_next=True),
        write(64, 16, pop_prev=True), relu(0, 64),
    ],
    "spilled bytes read back too early": [
        read(push_next=True),
        set_register(Unit.COMPUTE, "scale", 1.0, pop_prev=True, push_next=True),
        write(pop_prev=True), read(64), read(64), read(64), read(64, memory=1024),
    ],
}  # fmt: skip


HAZARDS["stored when only compute knows that it is loaded"] = [
    read(push_next=True),
    set_register(Unit.COMPUTE, "scale", 1.0, pop_prev=True),
    *[set_register(Unit.STORE, "rows", 1)] * 100,
    write(),
]


@pytest.mark.parametrize("case", HAZARDS)
def test_accesses_that_no_token_orders(case):
    # In this timing most of them come in the right order; on another machine they needn't.
    with pytest.raises(
        HazardError, match=r"may still be at pc .*; a token between them is missing"
    ):
        run(*HAZARDS[case])


def test_tokens_order_through_a_third_unit():
    # Load fills 0, compute passes on, store tells load; only then load overwrites.
    items = [
        read(push_next=True),
        *SHAPE,
        relu(0, 64, pop_prev=True, push_next=True),
        write(64, 16, pop_prev=True, push_next=True),
        read(0, 64, memory=64, pop_prev=True),
    ]
    assert run(*items)[0].leftover_tokens == {}
    without = [*items[:-1], read(0, 64, memory=64)]
    with pytest.raises(HazardError, match=r"reads input .*while the load unit .*at pc 10 "):
        run(*without)


def test_interleaved_boxes_do_not_touch():
    pitch = [
        set_register(Unit.COMPUTE, "output_pixel_pitch", 8),
        set_register(Unit.COMPUTE, "output_row_pitch", 16),
    ]
    rows = [
        set_register(Unit.LOAD, "rows", 4),
        set_register(Unit.LOAD, "memory_row_stride", 4),
        set_register(Unit.LOAD, "sram_row_stride", 8),
    ]

    def items(start):
        load = instruction("OP_DMA_READ", sram=start, bytes=4, rank=2)
        first = read(push_next=True)
        return [first, *SHAPE, *pitch, relu(0, 128, pop_prev=True), *rows, load]

    assert run(*items(132))[0].dma_read_bytes == 80
    with pytest.raises(HazardError, match=r"writes output .*0x80 to 0x9c"):
        run(*items(131))


def test_results_in_place_are_the_very_same_box():
    items = [read(push_next=True), *SHAPE]
    assert run(*items, relu(0, 0, pop_prev=True))[0].cycles > 0
    message = r"output .* falls on input .* in place are allowed: input, as the very same box"
    with pytest.raises(OperandError, match=message) as caught:
        run(*items, relu(0, 8, pop_prev=True))
    assert caught.value.pc == 8


def test_programs_and_memory_that_are_refused():
    made = program(read())
    memory = made.memory_image({})
    with pytest.raises(ProgramError, match=r"for the variant 'generic: pes=64 .*, not 'other: pes"):
        simulate(made, replace(HARDWARE, name="other"), memory)
    with pytest.raises(ProgramError, match=r"memory is uint8 \(4095,\); allowed: uint8 \(4096,\)"):
        simulate(made, HARDWARE, memory[1:])
    with pytest.raises(ProgramError, match="memory is int8"):
        simulate(made, HARDWARE, memory.view(np.int8))
    with pytest.raises(ProgramError, match="memory is a view with gaps or can't be written"):
        simulate(made, HARDWARE, np.repeat(memory, 2)[::2])
    memory.flags.writeable = False
    with pytest.raises(ProgramError, match="memory is a view with gaps or can't be written"):
        simulate(made, HARDWARE, memory)
