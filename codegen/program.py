"""A program: the instructions of one subgraph, its system memory, and which layer is which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from tvm_ext.codegen.accelerator import ADDRESS_LIMIT
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa import Instruction

ROLES = ("input", "output", "spill")
DTYPES = ("int8", "int32")


@dataclass(frozen=True)
class Buffer:
    """A region of system memory that isn't constant.

    Attributes
    ----------
    name : str
        Unique in the program.
    role : str
        ``input``: filled before the program starts; ``output``: read when it has ended;
        ``spill``: the program's own.
    address : int
        First byte.
    shape : tuple of int
        The dense array in it; images are (height, width, channels).
    dtype : str
        ``int8`` or ``int32``, little-endian.
    """

    name: str
    role: str
    address: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def end(self) -> int:
        """Address behind the last byte."""
        return self.address + self.nbytes

    def view(self, memory: np.ndarray) -> np.ndarray:
        """Its array in the flat uint8 image of system memory, not copied."""
        dtype = np.dtype(self.dtype).newbyteorder("<")
        array: np.ndarray = memory[self.address : self.end].view(dtype).reshape(self.shape)
        return array


@dataclass(frozen=True)
class Layer:
    """A layer's name, and its kind for sums: CONV, DEPTH, REQUANT, POOL, ... (figure 4)."""

    name: str
    kind: str


@dataclass(frozen=True)
class Program:
    """A command stream for one hardware variant, with what it needs in system memory.

    Attributes
    ----------
    variant : str
        `Accelerator.variant` of the hardware that it is for.
    instructions : tuple of Instruction
        OP_END is the last one, and only that.
    memory_bytes : int
        Size of system memory: constants from address 0 on, then the buffers.
    constants : bytes
        Weights, biases and factors.
    buffers : tuple of Buffer
        Inputs, outputs and spilled activations.
    layers : tuple of Layer
        The layers that the instructions belong to.
    tags : tuple of int
        For each instruction its index in `layers`, or -1.

    Raises
    ------
    ProgramError
        At construction: the parts don't fit together.
    """

    variant: str
    instructions: tuple[Instruction, ...]
    memory_bytes: int
    constants: bytes = b""
    buffers: tuple[Buffer, ...] = ()
    layers: tuple[Layer, ...] = ()
    tags: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.tags:
            object.__setattr__(self, "tags", (-1,) * len(self.instructions))
        ends = [pc for pc, item in enumerate(self.instructions) if item.mnemonic == "OP_END"]
        if ends != [len(self.instructions) - 1]:
            raise ProgramError(
                f"OP_END is at {ends} of {len(self.instructions)} instructions; "
                "allowed: once, as the last one"
            )
        if len(self.tags) != len(self.instructions):
            raise ProgramError(
                f"{len(self.tags)} layer tags for {len(self.instructions)} instructions"
            )
        if self.tags and not -1 <= min(self.tags) <= max(self.tags) < len(self.layers):
            raise ProgramError(
                f"layer tags from {min(self.tags)} to {max(self.tags)}; "
                f"allowed: -1 to {len(self.layers) - 1}"
            )
        if not len(self.constants) <= self.memory_bytes <= ADDRESS_LIMIT:
            raise ProgramError(
                f"memory_bytes is {self.memory_bytes}; allowed: {len(self.constants)} bytes of "
                f"constants to {ADDRESS_LIMIT}"
            )
        names = [buffer.name for buffer in self.buffers]
        for buffer in self.buffers:
            self._check_buffer(buffer, names)
        for text in (self.variant, *(t for x in self.layers for t in (x.name, x.kind)), *names):
            if not text.isprintable():
                raise ProgramError(f"the name {text!r} has characters that can't be printed")

    def _check_buffer(self, buffer: Buffer, names: list[str]) -> None:
        if names.count(buffer.name) > 1:
            raise ProgramError(f"two buffers have the name {buffer.name!r}")
        for option, allowed in (("role", ROLES), ("dtype", DTYPES)):
            if getattr(buffer, option) not in allowed:
                raise ProgramError(
                    f"buffer {buffer.name!r}: {option} {getattr(buffer, option)!r}; "
                    f"allowed: {', '.join(allowed)}"
                )
        if not buffer.shape or min(buffer.shape) < 1:
            raise ProgramError(
                f"buffer {buffer.name!r}: shape {buffer.shape}; allowed: sizes of 1 or more"
            )
        if not len(self.constants) <= buffer.address <= buffer.end <= self.memory_bytes:
            raise ProgramError(
                f"buffer {buffer.name!r}: bytes {buffer.address} to {buffer.end}; allowed: behind "
                f"the constants ({len(self.constants)}) and within {self.memory_bytes}"
            )

    def memory_image(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """System memory before the program starts.

        Parameters
        ----------
        inputs : Mapping[str, ndarray]
            For each input buffer, an array of its shape and dtype.

        Returns
        -------
        ndarray of uint8
            (memory_bytes,); what no constant or input fills is zero.

        Raises
        ------
        ProgramError
            An input is missing, unknown, or of another shape or dtype.
        """
        wanted = {buffer.name: buffer for buffer in self.buffers if buffer.role == "input"}
        if wanted.keys() != inputs.keys():
            raise ProgramError(f"the program has inputs {list(wanted)}, not {list(inputs)}")
        memory = np.zeros(self.memory_bytes, np.uint8)
        memory[: len(self.constants)] = np.frombuffer(self.constants, np.uint8)
        for name, buffer in wanted.items():
            array = np.asarray(inputs[name])
            if array.shape != buffer.shape or array.dtype != buffer.dtype:
                raise ProgramError(
                    f"input {name!r} is {array.dtype} {array.shape}; "
                    f"allowed: {buffer.dtype} {buffer.shape}"
                )
            buffer.view(memory)[...] = array
        return memory

    def outputs(self, memory: np.ndarray) -> dict[str, np.ndarray]:
        """Copies of the output buffers, by name, from system memory after a run."""
        return {
            buffer.name: buffer.view(memory).copy()
            for buffer in self.buffers
            if buffer.role == "output"
        }
