"""OP_END: the end of the program."""

from __future__ import annotations

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa.definition import Definition, Work, define
from tvm_ext.codegen.isa.operation import Operation


@define
class OpEnd(Definition):
    """The last instruction of every program; the program is over when every unit has stopped."""

    mnemonic = "OP_END"
    opcode = 0x00
    summary = "ends the program; exactly one, at its end"
    meaning = "all units stop behind their last instruction"
    cost = "0"

    def work(self, operation: Operation, accelerator: Accelerator) -> Work:
        return Work(0)
