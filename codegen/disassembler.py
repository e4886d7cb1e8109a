"""Programs as assembly text."""

from __future__ import annotations

import base64
import json

from tvm_ext.codegen.isa import ISA_VERSION, TOKENS, Instruction, Unit
from tvm_ext.codegen.isa.registers import register_numbered
from tvm_ext.codegen.program import Program

DATA_BYTES = 48
"""Constants of one line."""


def disassemble(program: Program) -> str:
    """A program as text, one instruction a line; `assemble` gives an equal program back.

    ::

        .isa 1
        .variant "generic: pes=64 ..."
        .memory 4096
        .constants 3
        .data 0x0 AQID
        .buffer "x" input 0x40 int8 8 8 3
        .layer "conv1" "CONV"
        .use 0 ; conv1 CONV
        OP_SET compute.in_height, 8 | pop_prev
        OP_SET compute.scale, 0x3f000000 ; 0.5
        OP_DMA_READ memory=0x40, sram=0x0, bytes=192, rank=1 | push_next
        .use none
        OP_END

    `.layer` lines number the layers from 0; `.use` says to which one the instructions up to the
    next `.use` belong. Behind ``|`` are the tokens, behind ``;`` is a comment.
    """
    lines = [
        f".isa {ISA_VERSION}",
        f".variant {_quoted(program.variant)}",
        f".memory {program.memory_bytes}",
        f".constants {len(program.constants)}",
    ]
    for start in range(0, len(program.constants), DATA_BYTES):
        text = base64.b64encode(program.constants[start : start + DATA_BYTES]).decode()
        lines.append(f".data {start:#x} {text}")
    for buffer in program.buffers:
        place = f"{buffer.role} {buffer.address:#x} {buffer.dtype}"
        sizes = " ".join(map(str, buffer.shape))
        lines.append(f".buffer {_quoted(buffer.name)} {place} {sizes}")
    lines += [f".layer {_quoted(layer.name)} {_quoted(layer.kind)}" for layer in program.layers]
    tag = -1
    for item, now in zip(program.instructions, program.tags, strict=True):
        if now != tag:
            if now < 0:
                lines.append(".use none")
            else:
                lines.append(f".use {now} ; {program.layers[now].name} {program.layers[now].kind}")
            tag = now
        lines.append(disassemble_instruction(item))
    return "\n".join(lines) + "\n"


def disassemble_instruction(item: Instruction) -> str:
    """One instruction as a line of text, without its end."""
    comment = ""
    if item.mnemonic == "OP_SET":
        unit, number, bits = item.values
        register = register_numbered(Unit(unit), number)
        value = register.value(bits)
        text = f" {Unit(unit).label}.{register.name}, {value}"
        if register.kind == "f32":
            # The bits, since a decimal number is rounded when it is read.
            text, comment = f" {Unit(unit).label}.{register.name}, {bits:#010x}", f" ; {value!r}"
    else:
        named = zip(item.definition.fields, item.values, strict=True)
        text = ", ".join(
            f"{field.name}={value:#x}" if field.bits == 32 and field.name != "bytes"
            else f"{field.name}={value}"
            for field, value in named
        )  # fmt: skip
        text = f" {text}" if text else ""
    tokens = " ".join(token for token in TOKENS if getattr(item, token))
    return f"{item.mnemonic}{text}{' | ' if tokens else ''}{tokens}{comment}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
