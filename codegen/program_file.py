"""Programs as bytes: header, checksum, names, instructions, constants."""

from __future__ import annotations

import json
import os
import struct
import zlib
from itertools import groupby
from pathlib import Path
from typing import Any

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa import ISA_VERSION, WORD_BYTES, Instruction
from tvm_ext.codegen.program import Buffer, Layer, Program
from tvm_ext.errors import ArtifactError
from tvm_ext.files import replacing

MAGIC = b"TVMXISA\n"
_HEADER = struct.Struct("<8sHHII")
_COUNT = struct.Struct("<I")


def program_bytes(program: Program) -> bytes:
    """A program as bytes; `parse_program` gives an equal one back.

    All numbers are little-endian. Header: 8 bytes magic, u16 ISA version, u16 zero, u32 bytes of
    the body, u32 CRC-32 of the body. Body: u32 bytes of the names and the names as JSON in UTF-8;
    u32 number of instructions and 16 bytes for each; the constants, up to the end.
    """
    names = {
        "variant": program.variant,
        "memory_bytes": program.memory_bytes,
        "buffers": [[b.name, b.role, b.address, list(b.shape), b.dtype] for b in program.buffers],
        "layers": [[layer.name, layer.kind] for layer in program.layers],
        "tags": [[len(list(run)), tag] for tag, run in groupby(program.tags)],
    }
    text = json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()
    body = b"".join((
        _COUNT.pack(len(text)),
        text,
        _COUNT.pack(len(program.instructions)),
        *(item.encode() for item in program.instructions),
        program.constants,
    ))  # fmt: skip
    return _HEADER.pack(MAGIC, ISA_VERSION, 0, len(body), zlib.crc32(body)) + body


def parse_program(data: bytes, accelerator: Accelerator | None = None) -> Program:
    """The program that bytes stand for.

    Parameters
    ----------
    data : bytes
        As `program_bytes` gives them.
    accelerator : Accelerator, optional
        Refuse programs for another variant.

    Raises
    ------
    ProgramError
        Truncated, corrupted, no program at all, for another ISA version or another variant.
    """
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise ProgramError(f"{len(data)} bytes that don't begin with a program's header")
    _, version, zero, size, checksum = _HEADER.unpack_from(data)
    if version != ISA_VERSION:
        raise ProgramError(f"the program is for ISA version {version}; allowed: {ISA_VERSION}")
    body = data[_HEADER.size :]
    if zero or len(body) != size:
        raise ProgramError(
            f"the program's body has {len(body)} bytes, its header says {size}: it is truncated "
            "or corrupted"
        )
    if zlib.crc32(body) != checksum:
        raise ProgramError("the program's checksum is wrong: it is corrupted")
    program = _parse_body(body)
    if accelerator is not None and program.variant != accelerator.variant:
        raise ProgramError(
            f"the program is for the variant {program.variant!r}, not {accelerator.variant!r}"
        )
    return program


def save_program(program: Program, path: str | os.PathLike[str]) -> None:
    """Write a program to a file; a failure leaves no partial file.

    Raises
    ------
    ProgramError
        The file can't be written.
    """
    try:
        with replacing(Path(path)) as stream:
            stream.write(program_bytes(program))
    except ArtifactError as error:
        raise ProgramError(str(error)) from error


def load_program(path: str | os.PathLike[str], accelerator: Accelerator | None = None) -> Program:
    """Read a program from a file, as `parse_program` does from bytes."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ProgramError(f"can't read the program {path}: {error}") from error
    return parse_program(data, accelerator)


def _parse_body(body: bytes) -> Program:
    text, rest = _counted(body, 1, "names")
    words, constants = _counted(rest, WORD_BYTES, "instructions")
    try:
        names = json.loads(text.decode())
        buffers = tuple(
            Buffer(_text(n), _text(r), _whole(a), tuple(map(_whole, s)), _text(d))
            for n, r, a, s, d in names["buffers"]
        )
        layers = tuple(Layer(_text(name), _text(kind)) for name, kind in names["layers"])
        runs = [(_whole(count), _whole(tag)) for count, tag in names["tags"]]
        variant, memory_bytes = _text(names["variant"]), _whole(names["memory_bytes"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ProgramError(f"the program's names can't be read: {error}") from error
    count = len(words) // WORD_BYTES
    if any(run < 1 for run, _ in runs) or sum(run for run, _ in runs) != count:
        raise ProgramError(f"the program's layer tags aren't those of {count} instructions")
    return Program(
        variant,
        decode_instructions(words),
        memory_bytes,
        constants,
        buffers,
        layers,
        tuple(tag for run, tag in runs for _ in range(run)),
    )


def decode_instructions(words: bytes) -> tuple[Instruction, ...]:
    """The instructions of a command stream, 16 bytes each.

    Raises
    ------
    ProgramError
        One isn't an instruction; names its place.
    """
    decoded, known = [], dict[bytes, Instruction]()
    for start in range(0, len(words), WORD_BYTES):
        word = words[start : start + WORD_BYTES]
        if (item := known.get(word)) is None:
            try:
                item = known[word] = Instruction.decode(word)
            except ProgramError as error:
                raise ProgramError(f"pc {start // WORD_BYTES}: {error}") from error
        decoded.append(item)
    return tuple(decoded)


def _counted(data: bytes, item_bytes: int, what: str) -> tuple[bytes, bytes]:
    if len(data) >= _COUNT.size:
        end = _COUNT.size + _COUNT.unpack_from(data)[0] * item_bytes
        if end <= len(data):
            return data[_COUNT.size : end], data[end:]
    raise ProgramError(f"the program ends within its {what}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value
