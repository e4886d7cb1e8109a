"""One definition is all that a new instruction needs: encoding, assembly, simulation, page."""

import numpy as np
import pytest

from tests.codegen.isa.machine import Sram, image_at, run
from tvm_ext.codegen.assembler import assemble_instruction
from tvm_ext.codegen.disassembler import disassemble_instruction
from tvm_ext.codegen.isa import DEFINITIONS, Instruction, instruction
from tvm_ext.codegen.isa.definition import BY_OPCODE, define
from tvm_ext.codegen.isa.elementwise import Unary
from tvm_ext.codegen.isa_page import isa_page


class OpENegate(Unary):
    """The negative values of a tensor whose zero point is 0."""

    mnemonic = "OP_E_NEGATE"
    opcode = 0x7F
    summary = "negative values"
    meaning = "output := clamp(-input)"
    registers = (*Unary.registers, "clamp_low", "clamp_high")

    def evaluate(self, operation, inputs):
        return [np.clip(-inputs[0].astype(np.int16), *operation.clamp()).astype(np.int8)]


@pytest.fixture
def negate():
    known = dict(DEFINITIONS)
    define(OpENegate)
    yield DEFINITIONS["OP_E_NEGATE"]
    DEFINITIONS.clear()
    DEFINITIONS.update(known)
    del BY_OPCODE[0x7F]


def test_a_new_instruction(negate):
    item = instruction("OP_E_NEGATE", input=16, output=32, push_prev=True)
    assert Instruction.decode(item.encode()) == item
    assert assemble_instruction(disassemble_instruction(item)) == item
    assert "\n## OP_E_NEGATE\n" in isa_page()
    sram = Sram(0)
    address, row, pixel = sram.place_image(np.array([[[-128, 5, -3]]], np.int8))
    registers = {
        "out_height": 1, "out_width": 1, "out_channels": 3, "input_row_pitch": row,
        "input_pixel_pitch": pixel, "output_row_pitch": 3, "output_pixel_pitch": 3,
    }  # fmt: skip
    output = sram.space(3)
    after, cost = run(sram, "OP_E_NEGATE", {"input": address, "output": output}, registers)
    assert image_at(after, output, (1, 1, 3), 3, 3).tolist() == [[[127, -5, 3]]]
    assert cost == (9, 0)
