"""The ISA as a whole: words by hand, round trips, and definitions that say what they use."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.codegen.instructions import instructions
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa import (
    DEFINITIONS,
    SRAM,
    Instruction,
    Operation,
    Unit,
    instruction,
    registers_of,
    set_register,
)
from tvm_ext.codegen.isa.definition import Definition, Field, Work, define
from tvm_ext.codegen.isa.registers import Register, add_register

TABLE_2 = {
    "OP_CONV", "OP_CONV_RELU", "OP_DEPTH_CONV", "OP_MAT_MUL", "OP_ACT_RELU", "OP_ACT_LRELU",
    "OP_POOL", "OP_E_ABS", "OP_C_MIN", "OP_C_MAX", "OP_E_ADD", "OP_E32_ADD", "OP_DMA_READ",
    "OP_DMA_WRITE",
}  # fmt: skip


def test_every_instruction_of_the_paper_is_there():
    assert DEFINITIONS.keys() >= TABLE_2 | {"OP_E_MUL", "OP_E_SHIFT", "OP_SET", "OP_END"}


def test_opcodes_stay():
    # A program's bytes depend on them: a change needs another ISA version.
    assert {name: d.opcode for name, d in DEFINITIONS.items()}.items() >= {
        "OP_END": 0x00, "OP_SET": 0x01, "OP_DMA_READ": 0x02, "OP_DMA_WRITE": 0x03,
        "OP_CONV": 0x10, "OP_CONV_RELU": 0x11, "OP_DEPTH_CONV": 0x12, "OP_MAT_MUL": 0x13,
        "OP_ACT_RELU": 0x20, "OP_ACT_LRELU": 0x21, "OP_POOL": 0x22,
        "OP_E_ABS": 0x30, "OP_C_MIN": 0x31, "OP_C_MAX": 0x32, "OP_E_ADD": 0x33,
        "OP_E32_ADD": 0x34, "OP_E_MUL": 0x35, "OP_E_SHIFT": 0x36,
    }.items()  # fmt: skip


@pytest.mark.parametrize("mnemonic", DEFINITIONS)
def test_every_instruction_has_a_file_and_a_test_of_its_name(mnemonic):
    here = Path(__file__).parent
    assert (here / "isa" / f"test_{mnemonic.lower()}.py").exists()
    module = type(DEFINITIONS[mnemonic]).__module__
    assert module == f"tvm_ext.codegen.isa.instructions.{mnemonic.lower()}"


def test_words_by_hand():
    conv = instruction(
        "OP_CONV", input=0x11223344, weights=0x55667788, output=0x99AABBCC, bias=1, wide=1,
        pop_prev=True, push_next=True,
    )  # fmt: skip
    # Opcode 0x10, tokens 1001 in binary, three addresses, flags bias (bit 0) and wide (bit 2).
    assert conv.encode().hex() == "10094433221188776655ccbbaa990500"
    scale = set_register(Unit.STORE, "rows", 0x01020304, pop_next=True, push_prev=True)
    # Unit 2 in 2 bits, register 0 in 8, then the value from bit 26 on: 0x01020304 << 10 | 2.
    assert scale.encode().hex() == "0106" + (0x01020304 << 10 | 2).to_bytes(14, "little").hex()
    assert instruction("OP_END").encode() == bytes(16)


@given(instructions())
def test_round_trip(item):
    assert Instruction.decode(item.encode()) == item


@given(st.binary(min_size=16, max_size=16))
def test_any_word_is_an_instruction_or_refused(word):
    try:
        item = Instruction.decode(word)
    except ProgramError:
        return
    assert item.encode() == word


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (b"", "an instruction has 16 bytes, not 0"),
        (bytes(17), "an instruction has 16 bytes, not 17"),
        (b"\xff" + bytes(15), "unknown opcode 0xff"),
        (b"\x10\x10" + bytes(14), "OP_CONV: bits without a meaning are set"),
        (bytes(15) + b"\x01", "OP_END: bits without a meaning are set"),
    ],
)
def test_words_that_are_refused(word, message):
    with pytest.raises(ProgramError, match=message):
        Instruction.decode(word)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: instruction("OP_NONE"), "unknown instruction 'OP_NONE'; known: OP_END, OP_SET"),
        (lambda: instruction("OP_CONV", inputs=1), "no field 'inputs'; it has: input, weights"),
        (lambda: Instruction("OP_CONV", (1,)), "OP_CONV has 7 fields, not 1"),
        (lambda: instruction("OP_CONV", bias=2), "field bias is 2; allowed: 0 to 1"),
        (lambda: instruction("OP_CONV", input=2**32), "allowed: 0 to 4294967295"),
        (lambda: instruction("OP_CONV", input=-1), "field input is -1"),
    ],
)
def test_instructions_that_are_refused(make, message):
    with pytest.raises(ProgramError, match=message):
        make()


def test_units_are_a_ring():
    assert [unit.next for unit in Unit] == [Unit.COMPUTE, Unit.STORE, Unit.LOAD]
    assert all(unit.next.previous is unit for unit in Unit)


def test_a_mnemonic_opcode_or_register_is_defined_once():
    class Twice(Definition):
        mnemonic, opcode, summary, meaning, cost = "OP_TWICE", 0x10, "", "", ""

        def work(self, operation, accelerator):
            return Work(1)

    class Large(Twice):
        mnemonic, opcode = "OP_LARGE", 0xEE
        fields = tuple(Field(f"f{n}", 32, "") for n in range(4))

    with pytest.raises(ValueError, match=r"OP_TWICE .* is defined twice"):
        define(Twice)
    with pytest.raises(ValueError, match="need more than 112 bits"):
        define(Large)
    with pytest.raises(ValueError, match=r"register 250 \(scale\) of compute is taken"):
        add_register(Register(250, "scale", "f32", 1.0, ""))
    assert "OP_TWICE" not in DEFINITIONS
    assert "OP_LARGE" not in DEFINITIONS


class Watched(dict):
    """Registers that note which of them are read."""

    def __init__(self, values):
        super().__init__(values)
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)


@pytest.mark.parametrize("mnemonic", DEFINITIONS)
def test_a_definition_names_the_registers_that_it_reads(mnemonic):
    definition, read = DEFINITIONS[mnemonic], set()
    small = [field for field in definition.fields if field.bits <= 2]
    for values in product(*(range(1 << field.bits) for field in small)):
        fields = {field.name: 1 for field in definition.fields}
        fields |= dict(zip((field.name for field in small), values, strict=True))
        if definition.problem_of(fields) or fields.get("kind") == 3 or fields.get("rank") == 0:
            continue
        registers = Watched(dict.fromkeys(registers_of(definition.unit_of(fields)), 1))
        registers |= {"pad_top": 0, "pad_left": 0}
        operation = Operation(0, mnemonic, fields, registers)
        operands = definition.operands(operation)
        arrays = [np.zeros(box.shape, box.dtype) for box in operands.reads]
        results = definition.evaluate(operation, arrays)
        shapes = [(box.shape, box.dtype) for box in operands.writes]
        assert [(array.shape, array.dtype) for array in results] == shapes
        assert all(
            box.space == SRAM or definition.unit is not Unit.COMPUTE for box in operands.reads
        )
        read |= registers.read
    assert read == set(definition.registers)


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_a_definition_is_documented(definition):
    for text in (definition.summary, definition.meaning, definition.cost, definition.inputs):
        assert text
    names = [field.name for field in definition.fields]
    assert len(names) == len(set(names))
    assert all(field.meaning for field in definition.fields)
