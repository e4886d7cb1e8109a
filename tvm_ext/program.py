"""The lowered model: buffers at fixed places in memory and kernel calls in order.

A program is plain data (JSON). It serves the compiler (one Relax VM function that makes the calls),
the executable (which lays out the memory) and the profiler (which makes the calls one by one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

from tvm_ext.dtypes import itemsize

ALIGNMENT = 64


@dataclass
class Buffer:
    """A tensor. With a `parent`, it is that buffer's memory from byte `offset` on.

    Without, `offset` is its place in the arena, or in the constants' slab. `kind` is ``"input"``,
    ``"constant"`` or ``"arena"`` (all else that is computed).
    """

    shape: tuple[int, ...]
    dtype: str
    kind: str
    parent: int | None = None
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * itemsize(self.dtype)


@dataclass
class Call:
    """One kernel call; `args` are buffer numbers, the `outputs` written ones last.

    `kernel` names a function of the program's own, or, when `packed`, one of TVM's runtime.
    """

    kernel: str
    args: tuple[int, ...]
    outputs: int
    layer: str
    packed: bool = False


@dataclass
class Program:
    """Buffers and calls, and which buffers are the model's inputs and outputs."""

    buffers: list[Buffer] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    arena_bytes: int = 0
    constant_bytes: int = 0

    def root(self, number: int) -> tuple[int, int]:
        """The buffer that owns the memory, and the offset in it."""
        offset = 0
        buffer = self.buffers[number]
        while buffer.parent is not None:
            offset += buffer.offset
            number = buffer.parent
            buffer = self.buffers[number]
        return number, offset

    def place(self, number: int) -> tuple[str, int]:
        """Slab (arena or constant) and byte offset of a buffer after planning."""
        root, offset = self.root(number)
        owner = self.buffers[root]
        return ("constant" if owner.kind == "constant" else "arena"), owner.offset + offset

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Program:
        """The inverse of `to_json`."""
        buffers = [Buffer(**{**b, "shape": tuple(b["shape"])}) for b in data["buffers"]]
        calls = [Call(**{**c, "args": tuple(c["args"])}) for c in data["calls"]]
        rest = {k: data[k] for k in ("inputs", "outputs", "arena_bytes", "constant_bytes")}
        return cls(buffers, calls, **rest)


def plan_memory(program: Program) -> None:
    """Give every owning buffer its place; buffers that are never alive together share memory.

    Greedy by size, largest first, lowest offset that is free during the buffer's life. Inputs are
    alive from the start (their memory is only reused after the last read), outputs to the end.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number in program.inputs.values():
        first[program.root(number)[0]] = -1
    for step, call in enumerate(program.calls):
        for number in call.args:
            root = program.root(number)[0]
            first.setdefault(root, step)
            last[root] = step
    for number in program.outputs.values():
        root = program.root(number)[0]
        first.setdefault(root, -1)
        last[root] = len(program.calls)
    for number in program.inputs.values():
        last.setdefault(program.root(number)[0], -1)

    end = 0
    placed: list[int] = []
    arena = [n for n in first if program.buffers[n].kind != "constant"]
    for number in sorted(arena, key=lambda n: (-program.buffers[n].nbytes, first[n])):
        buffer = program.buffers[number]
        busy = sorted(
            (other.offset, other.offset + aligned(other.nbytes))
            for o in placed
            if first[o] <= last[number] and first[number] <= last[o]
            for other in [program.buffers[o]]
        )
        offset = 0
        for low, high in busy:
            if offset + aligned(buffer.nbytes) <= low:
                break
            offset = max(offset, high)
        buffer.offset = offset
        placed.append(number)
        end = max(end, offset + aligned(buffer.nbytes))
    program.arena_bytes = end

    end = 0
    for buffer in program.buffers:
        if buffer.kind == "constant" and buffer.parent is None:
            buffer.offset = end
            end += aligned(buffer.nbytes)
    program.constant_bytes = end


def aligned(nbytes: int) -> int:
    """`nbytes` rounded up to the alignment that kernels rely on."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
