"""What one instruction is: encoding, operands, meaning and cost in one class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa.operand import Operand
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.registers import RegisterValue
from tvm_ext.codegen.isa.units import Unit

FIELD_BITS = 112
"""Bits of an instruction that its fields share: 128 less 8 of opcode and 8 of tokens."""


@dataclass(frozen=True)
class Field:
    """A part of an instruction: an unsigned number of so many bits, with its meaning."""

    name: str
    bits: int
    meaning: str


@dataclass(frozen=True, slots=True)
class Operands:
    """The boxes that one instruction reads and writes, in the order that `evaluate` has them."""

    reads: tuple[Operand, ...] = ()
    writes: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """What one instruction costs.

    Attributes
    ----------
    cycles : int
        Cycles of its unit, without waiting.
    macs : int
        Products that it adds up.
    bus_cycles : int
        Of the cycles, the last ones, in which it needs the bus to system memory.
    """

    cycles: int
    macs: int = 0
    bus_cycles: int = 0


class Definition(ABC):
    """One instruction of the ISA. A subclass with `define` before it becomes part of the ISA.

    Attributes
    ----------
    mnemonic, opcode, unit : str, int, Unit
        Its name, its number (0 to 255), and the unit that it runs in.
    summary, inputs, output : str
        For the ISA page: what it does, and the types that it takes and gives.
    meaning, cost : str
        For the ISA page: the result and the cycles as formulas.
    fields : tuple of Field
        At most `FIELD_BITS` bits.
    registers : tuple of str
        The registers of its unit that it reads.
    in_place : tuple of str
        The operands that may be the same box as the result: each value is read before its place is
        written. No other operand may share a byte with the result.
    """

    mnemonic: ClassVar[str]
    opcode: ClassVar[int]
    unit: ClassVar[Unit] = Unit.COMPUTE
    summary: ClassVar[str]
    inputs: ClassVar[str] = "-"
    output: ClassVar[str] = "-"
    meaning: ClassVar[str]
    cost: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]] = ()
    registers: ClassVar[tuple[str, ...]] = ()
    in_place: ClassVar[tuple[str, ...]] = ()

    def unit_of(self, fields: Mapping[str, int]) -> Unit:
        """The unit that an instruction with these fields runs in."""
        return self.unit

    def problem_of(self, fields: Mapping[str, int]) -> str:
        """Why no program may have these fields, whatever the registers; empty if one may."""
        return ""

    def missing_in(self, accelerator: Accelerator) -> str:
        """Why a variant doesn't have this instruction; empty if it has it."""
        return ""

    def operands(self, operation: Operation) -> Operands:
        """What it reads and writes.

        Raises
        ------
        OperandError
            A field or register has a value that it can't work with.
        """
        return Operands()

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The values that it writes, from those that it reads; shapes as in `operands`."""
        return []

    def registers_after(self, operation: Operation) -> dict[str, RegisterValue]:
        """The registers of its unit that it writes."""
        return {}

    @abstractmethod
    def work(self, operation: Operation, accelerator: Accelerator) -> Work:
        """What it costs."""


DEFINITIONS: dict[str, Definition] = {}
"""Every instruction by mnemonic, in the order of their opcodes."""
BY_OPCODE: dict[int, Definition] = {}

_Class = TypeVar("_Class", bound=type[Definition])


def define(cls: _Class) -> _Class:
    """Make a definition part of the ISA."""
    definition = cls()
    if definition.mnemonic in DEFINITIONS or definition.opcode in BY_OPCODE:
        raise ValueError(f"{definition.mnemonic} ({definition.opcode:#04x}) is defined twice")
    if sum(field.bits for field in definition.fields) > FIELD_BITS:
        raise ValueError(f"the fields of {definition.mnemonic} need more than {FIELD_BITS} bits")
    BY_OPCODE[definition.opcode] = definition
    DEFINITIONS[definition.mnemonic] = definition
    for entry in sorted(DEFINITIONS.values(), key=lambda entry: entry.opcode):
        DEFINITIONS[entry.mnemonic] = DEFINITIONS.pop(entry.mnemonic)
    return cls
