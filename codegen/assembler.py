"""Assembly text to programs."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa import (
    DEFINITIONS,
    ISA_VERSION,
    TOKENS,
    Instruction,
    Unit,
    register_named,
)
from tvm_ext.codegen.program import Buffer, Layer, Program

_UNITS = {unit.label: unit for unit in Unit}
_WORD = re.compile(r"\s*([^\s;]+)")
_DECODER = json.JSONDecoder()


def assemble(text: str) -> Program:
    """The program that a text stands for; the syntax is that of `disassemble`.

    Numbers are decimal, or hexadecimal behind ``0x``. A float32 register also takes a number with a
    point or an exponent. Fields that aren't named are 0. Empty lines are allowed.

    Raises
    ------
    ProgramError
        A line has a mistake (names it), or the lines don't make a program.
    """
    assembler = _Assembler()
    for number, line in enumerate(text.split("\n"), 1):
        try:
            assembler.read(line.strip())
        except ProgramError as error:
            raise ProgramError(f"line {number}: {error}") from error
    return assembler.program()


def assemble_instruction(line: str) -> Instruction:
    """The instruction that one line of text stands for.

    Raises
    ------
    ProgramError
        It isn't one.
    """
    code, _, tail = line.partition(";")[0].partition("|")
    tokens = tail.split()
    if unknown := [token for token in tokens if token not in TOKENS]:
        raise ProgramError(f"unknown token {unknown[0]!r}; allowed: {', '.join(TOKENS)}")
    mnemonic, _, rest = code.strip().partition(" ")
    parts = [part.strip() for part in rest.split(",")] if rest.strip() else []
    bits = [token in tokens for token in TOKENS]
    if mnemonic == "OP_SET":
        return Instruction(mnemonic, _register_write(parts), *bits)
    if mnemonic not in DEFINITIONS:
        raise ProgramError(f"unknown instruction {mnemonic!r}; known: {', '.join(DEFINITIONS)}")
    fields: dict[str, int] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or name in fields:
            raise ProgramError(f"{mnemonic}: {part!r}; allowed: field=number, each field once")
        fields[name] = _number(value)
    names = [field.name for field in DEFINITIONS[mnemonic].fields]
    if misspelled := [name for name in fields if name not in names]:
        raise ProgramError(f"{mnemonic} has no field {misspelled[0]!r}; it has: {', '.join(names)}")
    return Instruction(mnemonic, tuple(fields.get(name, 0) for name in names), *bits)


def _register_write(parts: list[str]) -> tuple[int, ...]:
    if len(parts) != 2:
        raise ProgramError("OP_SET takes unit.register, value")
    label, _, name = parts[0].partition(".")
    if label not in _UNITS:
        raise ProgramError(f"OP_SET: unknown unit {label!r}; allowed: {', '.join(_UNITS)}")
    register = register_named(_UNITS[label], name)
    if register.kind != "f32":
        bits = register.bits(_number(parts[1]))
    elif re.fullmatch(r"0x[0-9a-fA-F]+", parts[1]):
        bits = int(parts[1], 16)
    else:
        try:
            bits = register.bits(float(parts[1]))
        except ValueError:
            raise ProgramError(f"register {name}: {parts[1]!r} is no number") from None
    return int(_UNITS[label]), register.number, bits


def _number(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]+|0x[0-9a-fA-F]+", text):
        raise ProgramError(f"{text!r} is no number")
    return int(text, 16 if text.startswith("0x") else 10)


class _Assembler:
    def __init__(self) -> None:
        self._once: dict[str, Any] = {}
        self._constants = bytearray()
        self._buffers: list[Buffer] = []
        self._layers: list[Layer] = []
        self._instructions: list[Instruction] = []
        self._tags: list[int] = []
        self._tag = -1

    def read(self, line: str) -> None:
        """Take one line."""
        if not line or line.startswith(";"):
            return
        if not line.startswith("."):
            self._instructions.append(assemble_instruction(line))
            self._tags.append(self._tag)
            return
        name, *words = _words(line)
        reader = {
            ".isa": self._read_once, ".variant": self._read_once, ".memory": self._read_once,
            ".constants": self._read_once, ".data": self._read_data, ".buffer": self._read_buffer,
            ".layer": self._read_layer, ".use": self._read_use,
        }.get(name)  # fmt: skip
        if reader is None:
            raise ProgramError(f"unknown directive {name!r}")
        reader(name, words)

    def program(self) -> Program:
        """What the lines make together."""
        if missing := [
            name for name in (".isa", ".variant", ".memory", ".constants") if name not in self._once
        ]:
            raise ProgramError(f"the text lacks {', '.join(missing)}")
        if len(self._constants) != self._once[".constants"]:
            raise ProgramError(
                f"{len(self._constants)} bytes of .data; .constants says {self._once['.constants']}"
            )
        return Program(
            self._once[".variant"],
            tuple(self._instructions),
            self._once[".memory"],
            bytes(self._constants),
            tuple(self._buffers),
            tuple(self._layers),
            tuple(self._tags),
        )

    def _read_once(self, name: str, words: list[str]) -> None:
        if len(words) != 1 or name in self._once:
            raise ProgramError(f"{name} takes one value, once")
        self._once[name] = words[0] if name == ".variant" else _number(words[0])
        if name == ".isa" and self._once[name] != ISA_VERSION:
            raise ProgramError(f"the program is for ISA version {words[0]}; allowed: {ISA_VERSION}")

    def _read_data(self, name: str, words: list[str]) -> None:
        if len(words) != 2 or _number(words[0]) != len(self._constants):
            raise ProgramError(
                f".data takes the next address, {len(self._constants):#x}, and bytes in base64"
            )
        try:
            self._constants += base64.b64decode(words[1], validate=True)
        except (binascii.Error, ValueError) as error:
            raise ProgramError(f".data: {error}") from error

    def _read_buffer(self, name: str, words: list[str]) -> None:
        if len(words) < 5:
            raise ProgramError(".buffer takes name, role, address, dtype and sizes")
        label, role, address, dtype, *sizes = words
        shape = tuple(map(_number, sizes))
        self._buffers.append(Buffer(label, role, _number(address), shape, dtype))

    def _read_layer(self, name: str, words: list[str]) -> None:
        if len(words) != 2:
            raise ProgramError(".layer takes a name and a kind")
        self._layers.append(Layer(*words))

    def _read_use(self, name: str, words: list[str]) -> None:
        if len(words) != 1:
            raise ProgramError(".use takes the number of a layer, or none")
        self._tag = -1 if words[0] == "none" else _number(words[0])


def _words(line: str) -> list[str]:
    """A directive's words; those in quotes are JSON texts."""
    words, position = [], 0
    while position < len(line):
        if line[position] == '"':
            try:
                word, position = _DECODER.raw_decode(line, position)
            except json.JSONDecodeError as error:
                raise ProgramError(
                    f"a text in quotes isn't closed or well-formed: {error}"
                ) from error
            words.append(word)
        elif line[position] == ";":
            break
        elif line[position].isspace():
            position += 1
        else:
            match = _WORD.match(line, position)
            assert match is not None
            words.append(match[1])
            position = match.end()
    return words
