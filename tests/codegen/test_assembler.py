"""Assembly text: by hand, round trips of any program, and mistakes by line."""

import pytest
from hypothesis import given, settings

from tests.codegen.instructions import instructions, programs
from tests.codegen.streams import HARDWARE
from tvm_ext.codegen.assembler import assemble, assemble_instruction
from tvm_ext.codegen.disassembler import disassemble, disassemble_instruction
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa import Unit, instruction, set_register
from tvm_ext.codegen.program import Buffer, Layer, Program

TEXT = """\
.isa 1
.variant "generic: pes=64 sram_bytes=4096 parallel=output depthwise=hardware pixel_parallel=1"
.memory 128
.constants 3
.data 0x0 AQID
.buffer "x \\"1\\"" input 0x40 int8 2 3 4
.layer "conv; 1" "CONV"
OP_SET load.rows, 8 | pop_prev
.use 0 ; conv; 1 CONV
OP_SET compute.scale, 0x3f000000 ; 0.5
OP_SET compute.input_zero, -7
OP_DMA_READ memory=0x40, sram=0x0, bytes=24, rank=1 | pop_next push_next
OP_CONV input=0x0, weights=0x10, output=0x20, bias=1, per_channel=0, wide=1, accumulate=0
.use none
OP_END | pop_prev pop_next push_prev push_next
"""
PROGRAM = Program(
    HARDWARE.variant,
    (
        set_register(Unit.LOAD, "rows", 8, pop_prev=True),
        set_register(Unit.COMPUTE, "scale", 0.5),
        set_register(Unit.COMPUTE, "input_zero", -7),
        instruction("OP_DMA_READ", memory=64, bytes=24, rank=1, pop_next=True, push_next=True),
        instruction("OP_CONV", weights=16, output=32, bias=1, wide=1),
        instruction("OP_END", pop_prev=True, pop_next=True, push_prev=True, push_next=True),
    ),
    128,
    b"\x01\x02\x03",
    (Buffer('x "1"', "input", 64, (2, 3, 4), "int8"),),
    (Layer("conv; 1", "CONV"),),
    (-1, 0, 0, 0, 0, -1),
)


def test_by_hand():
    assert disassemble(PROGRAM) == TEXT
    assert assemble(TEXT) == PROGRAM


@settings(max_examples=40)
@given(programs())
def test_round_trip(program):
    text = disassemble(program)
    assert assemble(text) == program
    assert disassemble(assemble(text)) == text


@given(instructions())
def test_round_trip_of_one_line(item):
    assert assemble_instruction(disassemble_instruction(item)) == item


def test_what_a_person_may_write():
    short = assemble_instruction("  OP_POOL   input=16 , output=0x20,kind=2|push_next ; average")
    assert short == instruction("OP_POOL", input=16, output=32, kind=2, push_next=True)
    assert assemble_instruction("OP_E_ABS") == instruction("OP_E_ABS")
    for text in ("0.5", "5e-1", "0x3f000000"):
        scale = assemble_instruction(f"OP_SET compute.scale, {text}")
        assert scale == set_register(Unit.COMPUTE, "scale", 0.5)
    assert assemble(f"; a comment\n\n{TEXT}\n  ; more\n") == PROGRAM


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (".isa 1", ".isa 2", "line 1: the program is for ISA version 2; allowed: 1"),
        (".isa 1\n", "", "the text lacks .isa"),
        (".memory 128", ".memory 128\n.memory 1", "line 4: .memory takes one value, once"),
        (".memory 128", ".memory x", "line 3: 'x' is no number"),
        (".constants 3", ".constants 4", "3 bytes of .data; .constants says 4"),
        ("0x0 AQID", "0x1 AQID", "line 5: .data takes the next address, 0x0"),
        ("AQID", "AQ!D", "line 5: .data: "),
        ('"x \\"1\\""', '"x', "line 6: a text in quotes isn't closed"),
        ("input 0x40 int8 2 3 4", "input 0x40 int8", "line 6: .buffer takes name, role"),
        ('"CONV"', "", "line 7: .layer takes a name and a kind"),
        (".use 0", ".use", "line 9: .use takes the number of a layer, or none"),
        (".use 0", ".use 1", "layer tags from -1 to 1; allowed: -1 to 0"),
        (".use 0", ".using 0", "line 9: unknown directive '.using'"),
        ("load.rows", "dma.rows", "line 8: OP_SET: unknown unit 'dma'; allowed: load, compute"),
        ("load.rows", "load.scale", "line 8: the load unit has no register 'scale'"),
        ("load.rows, 8", "load.rows", "line 8: OP_SET takes unit.register, value"),
        ("0x3f000000", "half", "line 10: register scale: 'half' is no number"),
        ("0x3f000000", "0x7f800000", "line 10: OP_SET: register scale: bits 0x7f800000 are inf"),
        ("input_zero, -7", "input_zero, -129", "line 11: register input_zero: -129"),
        ("bytes=24", "size=24", "line 12: OP_DMA_READ has no field 'size'; it has: memory"),
        ("bytes=24", "sram=24", "line 12: OP_DMA_READ: 'sram=24'; allowed: field=number, each"),
        ("bytes=24", "24", "line 12: OP_DMA_READ: '24'; allowed: field=number"),
        ("rank=1", "rank=4", "line 12: OP_DMA_READ: field rank is 4; allowed: 0 to 3"),
        ("| pop_next", "| pop", "line 12: unknown token 'pop'; allowed: pop_prev, pop_next"),
        ("OP_CONV", "OP_CONF", "line 13: unknown instruction 'OP_CONF'; known: OP_END"),
        ("OP_END", "OP_E_ABS", r"OP_END is at \[\] of 6 instructions"),
    ],
)
def test_mistakes(old, new, message):
    assert TEXT.count(old) == 1
    with pytest.raises(ProgramError, match=message):
        assemble(TEXT.replace(old, new))
