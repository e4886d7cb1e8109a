"""One instruction of a program, and its 16 bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa.definition import BY_OPCODE, DEFINITIONS, Definition
from tvm_ext.codegen.isa.registers import RegisterValue, register_named
from tvm_ext.codegen.isa.units import Unit

WORD_BYTES = 16
TOKENS = ("pop_prev", "pop_next", "push_prev", "push_next")
"""The token bits, from bit 8 of an instruction on."""


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    A word has 128 bits, little-endian: the opcode in bits 0 to 7, the token bits in 8 to 11, zeros
    in 12 to 15, then the fields in the order of the definition, the rest zero.

    Attributes
    ----------
    mnemonic : str
        Which instruction.
    values : tuple of int
        Its fields, in the order of the definition.
    pop_prev, pop_next : bool
        Before it starts, it takes a token that the previous, the next unit pushed for its unit.
    push_prev, push_next : bool
        When it has ended, it gives the previous, the next unit a token.

    Raises
    ------
    ProgramError
        At construction: no such instruction, another number of fields, or a value too large.
    """

    mnemonic: str
    values: tuple[int, ...] = ()
    pop_prev: bool = False
    pop_next: bool = False
    push_prev: bool = False
    push_next: bool = False

    def __post_init__(self) -> None:
        if (definition := DEFINITIONS.get(self.mnemonic)) is None:
            raise ProgramError(
                f"unknown instruction {self.mnemonic!r}; known: {', '.join(DEFINITIONS)}"
            )
        if len(self.values) != len(definition.fields):
            raise ProgramError(
                f"{self.mnemonic} has {len(definition.fields)} fields, not {len(self.values)}"
            )
        for field, value in zip(definition.fields, self.values, strict=True):
            if not 0 <= value < 1 << field.bits:
                raise ProgramError(
                    f"{self.mnemonic}: field {field.name} is {value}; "
                    f"allowed: 0 to {(1 << field.bits) - 1}"
                )
        if problem := definition.problem_of(self.fields):
            raise ProgramError(f"{self.mnemonic}: {problem}")

    @property
    def definition(self) -> Definition:
        """What the instruction is."""
        return DEFINITIONS[self.mnemonic]

    @cached_property
    def fields(self) -> dict[str, int]:
        """Its fields by name."""
        names = (field.name for field in self.definition.fields)
        return dict(zip(names, self.values, strict=True))

    @property
    def unit(self) -> Unit:
        """The unit that it runs in."""
        return self.definition.unit_of(self.fields)

    def encode(self) -> bytes:
        """Its 16 bytes."""
        word, position = self.definition.opcode, 8
        for bit in (self.pop_prev, self.pop_next, self.push_prev, self.push_next):
            word |= int(bit) << position
            position += 1
        position = 16
        for field, value in zip(self.definition.fields, self.values, strict=True):
            word |= value << position
            position += field.bits
        return word.to_bytes(WORD_BYTES, "little")

    @classmethod
    def decode(cls, data: bytes) -> Instruction:
        """The instruction that 16 bytes stand for.

        Raises
        ------
        ProgramError
            Another number of bytes, an unknown opcode, or bits that have no meaning are set.
        """
        if len(data) != WORD_BYTES:
            raise ProgramError(f"an instruction has {WORD_BYTES} bytes, not {len(data)}")
        if (definition := BY_OPCODE.get(data[0])) is None:
            raise ProgramError(f"unknown opcode {data[0]:#04x}")
        word = int.from_bytes(data, "little") >> 8
        tokens = [bool(word >> i & 1) for i in range(len(TOKENS))]
        unused = word >> len(TOKENS) & 0xF
        word >>= 8
        values = []
        for field in definition.fields:
            values.append(word & (1 << field.bits) - 1)
            word >>= field.bits
        if unused or word:
            raise ProgramError(f"{definition.mnemonic}: bits without a meaning are set")
        return cls(definition.mnemonic, tuple(values), *tokens)


def instruction(
    mnemonic: str,
    *,
    pop_prev: bool = False,
    pop_next: bool = False,
    push_prev: bool = False,
    push_next: bool = False,
    **fields: int,
) -> Instruction:
    """An instruction from named fields; what isn't named is 0.

    Raises
    ------
    ProgramError
        No such instruction or field, or a value too large.
    """
    definition = DEFINITIONS.get(mnemonic)
    names = [field.name for field in definition.fields] if definition else []
    if definition and (unknown := [name for name in fields if name not in names]):
        raise ProgramError(f"{mnemonic} has no field {unknown[0]!r}; it has: {', '.join(names)}")
    values = tuple(int(fields.get(name, 0)) for name in names)
    return Instruction(mnemonic, values, pop_prev, pop_next, push_prev, push_next)


def set_register(
    unit: Unit,
    register: str,
    value: RegisterValue,
    *,
    pop_prev: bool = False,
    pop_next: bool = False,
    push_prev: bool = False,
    push_next: bool = False,
) -> Instruction:
    """OP_SET: write a register of a unit.

    Raises
    ------
    ProgramError
        The unit has no such register, or the register can't hold the value.
    """
    entry = register_named(unit, register)
    return Instruction(
        "OP_SET",
        (int(unit), entry.number, entry.bits(value)),
        pop_prev,
        pop_next,
        push_prev,
        push_next,
    )
