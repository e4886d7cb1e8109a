"""OP_SET: values, refusals, and its cycle by hand."""

import struct

import pytest

from tests.codegen.streams import events, read, relu, run, shape
from tvm_ext.codegen.errors import OperandError, ProgramError
from tvm_ext.codegen.isa import (
    Instruction,
    Unit,
    instruction,
    register_named,
    registers_of,
    set_register,
)


@pytest.mark.parametrize(
    ("register", "value", "bits"),
    [
        ("in_height", 0, 0),
        ("in_height", 2**32 - 1, 0xFFFFFFFF),
        ("input_zero", -128, 0xFFFFFF80),
        ("input_zero", 127, 0x7F),
        ("scale", 0.5, 0x3F000000),
        ("scale", -0.0, 0x80000000),
        ("scale", 3, 0x40400000),
        ("scale", 0.1, struct.unpack("<I", struct.pack("<f", 0.1))[0]),
    ],
)
def test_bits_and_back(register, value, bits):
    item = set_register(Unit.COMPUTE, register, value)
    entry = register_named(Unit.COMPUTE, register)
    assert item.values == (1, entry.number, bits)
    rounded = struct.unpack("<f", struct.pack("<f", value))[0] if register == "scale" else value
    assert entry.value(bits) == rounded


@pytest.mark.parametrize(
    ("unit", "register", "value", "message"),
    [
        (Unit.COMPUTE, "in_height", -1, "in_height: -1; allowed: a whole number from 0 to 4294967"),
        (Unit.COMPUTE, "in_height", 2**32, "allowed: a whole number from 0 to 4294967295"),
        (Unit.COMPUTE, "in_height", 1.5, "in_height: 1.5; allowed: a whole number"),
        (Unit.COMPUTE, "input_zero", 128, "input_zero: 128; allowed: a whole number from -128"),
        (Unit.COMPUTE, "scale", float("nan"), "scale: nan; allowed: a finite float32"),
        (Unit.COMPUTE, "scale", 1e39, r"scale: 1e\+39; allowed: a finite float32"),
        (Unit.LOAD, "scale", 1.0, "the load unit has no register 'scale'; it has: rows, planes"),
    ],
)
def test_values_that_a_register_refuses(unit, register, value, message):
    with pytest.raises(ProgramError, match=message):
        set_register(unit, register, value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((3, 0, 0), "OP_SET: unit 3; allowed: 0, 1, 2"),
        ((0, 6, 0), "the load unit has no register 6"),
        ((1, 18, 128), "input_zero: 128; allowed: -128 to 127"),
        ((1, 22, 0x7F800000), "scale: bits 0x7f800000 are inf"),
        ((1, 22, 0x7FC00000), "scale: bits 0x7fc00000 are nan"),
    ],
)
def test_bits_that_no_program_may_have(values, message):
    with pytest.raises(ProgramError, match=message):
        Instruction("OP_SET", values)


def test_every_register_starts_at_its_reset_value_and_takes_it():
    for unit in Unit:
        for name, register in registers_of(unit).items():
            bits = set_register(unit, name, register.reset).values[2]
            assert register.value(bits) == register.reset


def test_registers_stay_until_they_are_set_again():
    items = [*shape(1, 1, 4), relu(0, 8, pop_prev=True), relu(0, 16)]
    reset = set_register(Unit.COMPUTE, "out_channels", 0)
    with pytest.raises(OperandError, match="out_channels is 0") as caught:
        run(read(0, 64, push_next=True), *items, reset, relu(0, 24))
    assert caught.value.pc == 11


def test_units_have_registers_of_their_own():
    rows = set_register(Unit.STORE, "rows", 0)
    two_rows = instruction("OP_DMA_READ", bytes=4, rank=2)
    stride = set_register(Unit.LOAD, "sram_row_stride", 4)
    result, _ = run(rows, set_register(Unit.LOAD, "rows", 2), stride, two_rows)
    assert result.dma_read_bytes == 8


def test_one_cycle():
    result, _ = run(*[set_register(Unit.STORE, "rows", 2)] * 3)
    assert events(result, Unit.STORE) == [(0, 0, 1), (1, 1, 2), (2, 2, 3)]
    assert result.cycles == 3
