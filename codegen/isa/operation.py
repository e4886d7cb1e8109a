"""One instruction at the moment it runs: its fields, and the registers of its unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from tvm_ext.codegen.errors import OperandError
from tvm_ext.codegen.isa.operand import SRAM, Operand
from tvm_ext.codegen.isa.registers import RegisterValue

_SHIFT_LIMIT = 255


@dataclass(frozen=True, slots=True)
class Operation:
    """What the meaning of an instruction is computed from.

    Attributes
    ----------
    pc : int
        Place in the program.
    mnemonic : str
        The instruction.
    fields : Mapping[str, int]
        Its fields.
    registers : Mapping[str, int or float]
        The registers of its unit, by name.
    """

    pc: int
    mnemonic: str
    fields: Mapping[str, int]
    registers: Mapping[str, RegisterValue]

    def refuse(self, reason: str) -> NoReturn:
        """Raise `OperandError` for this instruction."""
        raise OperandError(reason, self.pc, self.mnemonic)

    def whole(self, register: str) -> int:
        """An integer register."""
        return int(self.registers[register])

    def size(self, register: str) -> int:
        """An integer register that is a size, so 1 or more."""
        value = int(self.registers[register])
        if value < 1:
            self.refuse(f"register {register} is {value}; allowed: 1 or more")
        return value

    def image(
        self, name: str, address: int, shape: tuple[int, int, int], pitches: str | None = None
    ) -> Operand:
        """An int8 box in SRAM with the pitches ``<pitches>_row_pitch`` and ``..._pixel_pitch``."""
        prefix = pitches or name
        return Operand(
            name,
            SRAM,
            address,
            shape,
            self.whole(f"{prefix}_row_pitch"),
            self.whole(f"{prefix}_pixel_pitch"),
            "int8",
        )

    def shift(self) -> int:
        """What int8 values are less than those of the tensor that they stand for."""
        shift = self.whole("value_shift")
        if shift > _SHIFT_LIMIT:
            self.refuse(f"register value_shift is {shift}; allowed: 0 to {_SHIFT_LIMIT}")
        return shift

    def clamp(self) -> tuple[int, int]:
        """The smallest and the largest result."""
        low, high = self.whole("clamp_low"), self.whole("clamp_high")
        if low > high:
            self.refuse(f"clamp_low is {low}, above clamp_high, which is {high}")
        return low, high
