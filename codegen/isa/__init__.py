"""The instruction set: encoding, operands, meaning and cost of every instruction."""

from tvm_ext.codegen.isa import instructions as _instructions  # noqa: F401, fills DEFINITIONS
from tvm_ext.codegen.isa.costs import (
    bus_cycles,
    conv_cycles,
    depth_conv_cycles,
    dma_cycles,
    elementwise_cycles,
)
from tvm_ext.codegen.isa.definition import DEFINITIONS, Definition, Field, Operands, Work
from tvm_ext.codegen.isa.instruction import (
    TOKENS,
    WORD_BYTES,
    Instruction,
    instruction,
    set_register,
)
from tvm_ext.codegen.isa.operand import MEMORY, SRAM, Operand
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.registers import Register, register_named, registers_of
from tvm_ext.codegen.isa.units import Unit

ISA_VERSION = 1
"""Programs of another version are refused."""

__all__ = [
    "DEFINITIONS",
    "ISA_VERSION",
    "MEMORY",
    "SRAM",
    "TOKENS",
    "WORD_BYTES",
    "Definition",
    "Field",
    "Instruction",
    "Operand",
    "Operands",
    "Operation",
    "Register",
    "Unit",
    "Work",
    "bus_cycles",
    "conv_cycles",
    "depth_conv_cycles",
    "dma_cycles",
    "elementwise_cycles",
    "instruction",
    "register_named",
    "registers_of",
    "set_register",
]
