"""OP_SET: write one configuration register of one unit."""

from __future__ import annotations

from collections.abc import Mapping

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa.costs import SET_CYCLES
from tvm_ext.codegen.isa.definition import Definition, Field, Work, define
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.registers import Register, RegisterValue, register_numbered
from tvm_ext.codegen.isa.units import Unit


@define
class OpSet(Definition):
    """Runs in the queue of the unit that it configures, so instructions before it don't see it."""

    mnemonic = "OP_SET"
    opcode = 0x01
    summary = "writes a configuration register of a unit, in that unit's program order"
    meaning = "register := value"
    cost = "1"
    fields = (
        Field("unit", 2, "0 load, 1 compute, 2 store"),
        Field("register", 8, "number of the register"),
        Field("value", 32, "its bits: u32, sign-extended i8, or IEEE float32"),
    )

    def unit_of(self, fields: Mapping[str, int]) -> Unit:
        return Unit(fields["unit"])

    def problem_of(self, fields: Mapping[str, int]) -> str:
        if fields["unit"] not in list(Unit):
            return f"unit {fields['unit']}; allowed: 0, 1, 2"
        try:
            self.register_of(fields).value(fields["value"])
        except ProgramError as error:
            return str(error)
        return ""

    def register_of(self, fields: Mapping[str, int]) -> Register:
        """The register that is written."""
        return register_numbered(self.unit_of(fields), fields["register"])

    def registers_after(self, operation: Operation) -> dict[str, RegisterValue]:
        register = self.register_of(operation.fields)
        return {register.name: register.value(operation.fields["value"])}

    def work(self, operation: Operation, accelerator: Accelerator) -> Work:
        return Work(SET_CYCLES)
