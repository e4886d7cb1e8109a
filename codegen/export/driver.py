"""A program as a C driver: its command stream, its constants, and code that feeds a device."""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.export.c_text import byte_rows, c_comment, c_name, c_string, word_row
from tvm_ext.codegen.isa import ISA_VERSION, WORD_BYTES
from tvm_ext.codegen.program import Buffer, Program
from tvm_ext.errors import ArtifactError
from tvm_ext.files import replacing

CHUNK_VALUES = 16
"""int32 values that the driver turns into bytes at once, on its stack."""


class DriverFiles(NamedTuple):
    """The files of a driver."""

    source: Path
    header: Path


def export_program(
    program: Program, folder: str | os.PathLike[str], name: str = "model"
) -> DriverFiles:
    """Write a program as one C source and one header; see `docs/driver.md`.

    The sources are C99 and C++11, allocate nothing, and need nothing but ``strcmp``. The same
    program gives the same files. They appear whole or not at all: both are complete before the
    first one gets its name, and a source that meets another export's header doesn't compile.

    Parameters
    ----------
    program : Program
        With one output or more.
    folder : path
        Where ``NAME.c`` and ``NAME.h`` go; must exist.
    name : str
        Name of the files, and the first part of every name in them: a letter, then letters, digits
        and underscores, all of ASCII.

    Returns
    -------
    DriverFiles
        The paths of the source and of the header.

    Raises
    ------
    ProgramError
        The name isn't allowed, the program has no output, or a file can't be written.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ProgramError(
            f"the driver's name is {name!r}; allowed: a letter, then letters, digits and _"
        )
    if not any(buffer.role == "output" for buffer in program.buffers):
        raise ProgramError("the program has no output buffer, so a driver would compute nothing")
    files = DriverFiles(Path(folder, f"{name}.c"), Path(folder, f"{name}.h"))
    for path in files:
        if path.is_dir():
            raise ProgramError(f"can't write {path}: it is a folder")
    texts = _render(program, name)
    try:
        with replacing(files.source) as source, replacing(files.header) as header:
            source.write(texts[0].encode())
            header.write(texts[1].encode())
    except ArtifactError as error:
        raise ProgramError(str(error)) from error
    return files


@dataclass(frozen=True)
class _CBuffer:
    """A buffer with the names that it has in C.

    Attributes
    ----------
    buffer : Buffer
    name : str
        Of the parameter; in capitals, the first part of its macros.
    """

    buffer: Buffer
    name: str

    @property
    def ctype(self) -> str:
        return f"{self.buffer.dtype}_t"

    @property
    def macro(self) -> str:
        return self.name.upper()

    @property
    def count(self) -> int:
        return prod(self.buffer.shape)

    @property
    def comment(self) -> str:
        shape = ", ".join(map(str, self.buffer.shape))
        text: str = c_comment(f"{self.buffer.name}: {self.buffer.dtype} ({shape})")
        return text


def _render(program: Program, name: str) -> tuple[str, str]:
    words = [item.encode() for item in program.instructions]
    buffers = _named(program.buffers)
    values = {
        "name": name,
        "macro": name.upper(),
        "program": program,
        "isa_version": ISA_VERSION,
        "crc": zlib.crc32(program.constants, zlib.crc32(b"".join(words))),
        "command_words": len(words) * WORD_BYTES // 4,
        "commands": [
            f"{word_row(word)} /* {pc} {item.mnemonic} */"
            for pc, (word, item) in enumerate(zip(words, program.instructions, strict=True))
        ],
        "constant_rows": list(byte_rows(program.constants)),
        "buffers": buffers,
        "inputs": [item for item in buffers if item.buffer.role == "input"],
        "outputs": [item for item in buffers if item.buffer.role == "output"],
        "rank": max(len(buffer.shape) for buffer in program.buffers),
        "chunk": CHUNK_VALUES,
        "crc_table": [f"0x{entry:08x}U" for entry in _crc_table()],
    }
    environment = Environment(
        loader=PackageLoader("tvm_ext.codegen.export"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["c_string"] = c_string
    source, header = (
        environment.get_template(f"driver.{suffix}.jinja").render(values) for suffix in "ch"
    )
    return source, header


def _named(buffers: tuple[Buffer, ...]) -> list[_CBuffer]:
    named, taken = [], set[str]()
    for buffer in buffers:
        name = c_name(f"{buffer.role} {buffer.name}", taken)
        taken.add(name)
        named.append(_CBuffer(buffer, name))
    return named


def _crc_table() -> list[int]:
    """For each value of four bits, what CRC-32 adds when they leave the register."""
    table = []
    for entry in range(16):
        for _ in range(4):
            entry = entry >> 1 ^ (0xEDB88320 if entry & 1 else 0)
        table.append(entry)
    return table
