"""Programs of random instructions: a result or a named error, soon, whatever they ask for."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codegen.streams import CONSTANTS, HARDWARE
from tvm_ext.codegen.errors import SimulationError
from tvm_ext.codegen.isa import (
    DEFINITIONS,
    Instruction,
    Unit,
    instruction,
    registers_of,
    set_register,
)
from tvm_ext.codegen.program import Buffer, Program
from tvm_ext.codegen.simulator import simulate

WILD = st.integers(0, 2**32 - 1)
PREAMBLE = (
    # The whole SRAM is loaded, and all units know.
    instruction("OP_DMA_READ", bytes=1024, rank=1, push_next=True),
    set_register(Unit.COMPUTE, "scale", 0.01, pop_prev=True, push_next=True),
    set_register(Unit.STORE, "rows", 1, pop_prev=True),
)


@st.composite
def streams(draw):
    """Small sizes and places in an SRAM that is loaded first, and now and then any number."""
    wild = draw(st.sampled_from([False, False, True]))
    items = list(PREAMBLE)
    for unit in Unit:
        for name, register in registers_of(unit).items():
            value = draw(register_values(name, register, wild))
            items.append(Instruction("OP_SET", (unit, register.number, register.bits(value))))
    for _ in range(draw(st.integers(1, 3))):
        mnemonic = draw(st.sampled_from([d for d in DEFINITIONS if d not in ("OP_END", "OP_SET")]))
        values = tuple(draw(field_values(field, wild)) for field in DEFINITIONS[mnemonic].fields)
        tokens = draw(st.sampled_from([(), (), (), ("pop_prev",), ("push_next",)]))
        items.append(Instruction(mnemonic, values, **dict.fromkeys(tokens, True)))
    return (*items, instruction("OP_END"))


def register_values(name, register, wild):
    """Sizes of a few elements, pitches that leave gaps, addresses at multiples of 4."""
    if register.kind == "i8":
        return st.sampled_from({"clamp_low": [-128, -9], "clamp_high": [127, 9]}.get(name, [0, 5]))
    if register.kind == "f32":
        return st.floats(width=32, allow_nan=False, allow_infinity=False)
    places = {"pitch": [16, 48], "address": [0, 512], "stride": [1, 32], "pad": [0, 1]}
    usual = next((v for key, v in places.items() if key in name), [1, 2, 3])
    return st.one_of(st.sampled_from(usual), WILD if wild else st.sampled_from(usual))


def field_values(field, wild):
    """Addresses at multiples of 4, few bytes, any flags."""
    if field.bits <= 2:
        return st.integers(0, 2**field.bits - 1)
    usual = (
        st.integers(1, 20) if field.name == "bytes" else st.integers(0, 255).map(lambda n: n * 4)
    )
    return st.one_of(usual, WILD) if wild else usual


@given(streams(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_result_or_a_named_error(items, arithmetic):
    constants = CONSTANTS[:1024]
    buffers = (Buffer("y", "output", 1024, (1024,), "int8"),)
    program = Program(HARDWARE.variant, items, 2048, constants, buffers)
    memory = program.memory_image({})
    try:
        result = simulate(program, HARDWARE, memory, cycle_budget=10**6, arithmetic=arithmetic)
    except SimulationError as error:
        assert 0 <= error.pc < len(items)
        assert error.mnemonic == items[error.pc].mnemonic
        return
    assert result.cycles <= 10**6
    again = program.memory_image({})
    simulate(program, replace(HARDWARE, dma_latency_cycles=1), again, arithmetic=arithmetic)
    # Without a hazard, values don't depend on the timing.
    np.testing.assert_array_equal(memory, again)
