"""A program while it grows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from tvm import tirx

from tvm_ext.program import ALIGNMENT, Buffer, Call, Program


class ProgramBuilder:
    """Adds buffers and calls to a program, and keeps what they refer to.

    Attributes
    ----------
    program : Program
    kernels : dict of str to PrimFunc
        By the names that the calls use.
    constants : dict of int to ndarray
        Contents of the constant buffers.
    """

    def __init__(self) -> None:
        self.program = Program()
        self.kernels: dict[str, tirx.PrimFunc] = {}
        self.constants: dict[int, np.ndarray] = {}
        self._written_by_kernel: set[int] = set()

    def buffer(self, shape: Sequence[int], dtype: str, kind: str = "arena") -> int:
        """A new buffer's number; for `kind` see `tvm_ext.program.Buffer`."""
        return self._append(Buffer(tuple(int(d) for d in shape), dtype, kind))

    def input(self, name: str, shape: Sequence[int], dtype: str) -> int:
        """The buffer of a new input of the model."""
        number = self.program.inputs[name] = self.buffer(shape, dtype, "input")
        return number

    def constant(self, array: np.ndarray) -> int:
        """A buffer with these contents."""
        # Unlike `ascontiguousarray`, this keeps an array without dimensions as it is.
        array = np.asarray(array, order="C")
        number = self.buffer(array.shape, str(array.dtype), "constant")
        self.constants[number] = array
        return number

    def view(self, parent: int, shape: Sequence[int], offset: int = 0) -> int:
        """Another shape on (part of) the memory of an existing buffer, from byte `offset` on."""
        origin = self.program.buffers[parent]
        if origin.shape == tuple(shape) and offset == 0:
            return parent
        return self._append(Buffer(tuple(shape), origin.dtype, origin.kind, parent, offset))

    def join(self, parts: Sequence[int], shape: Sequence[int], dtype: str) -> int | None:
        """A buffer in whose memory the parts lie one after the other; None if they can't.

        A part can that owns its memory, has been written by a kernel (or is such a join itself),
        occurs once, and starts where kernels may start reading.
        """
        sizes = [self.program.buffers[part].nbytes for part in parts]
        offsets = list(accumulate(sizes[:-1], initial=0))
        movable = {part for part in parts if self._may_move(part)}
        if len(movable) != len(parts) or any(offset % ALIGNMENT for offset in offsets):
            return None
        whole = self.buffer(shape, dtype)
        for part, offset in zip(parts, offsets, strict=True):
            self.program.buffers[part].parent = whole
            self.program.buffers[part].offset = offset
        self._written_by_kernel.add(whole)
        return whole

    def kernel(self, prefix: str, function: tirx.PrimFunc) -> str:
        """The name under which calls find a function."""
        name = f"{prefix}_{len(self.kernels)}"
        self.kernels[name] = function.with_attr("global_symbol", name)
        return name

    def call(
        self, kernel: str, args: Sequence[int], outputs: int, layer: str, packed: bool = False
    ) -> None:
        """Add a call, for whose parameters see `tvm_ext.program.Call`."""
        self.program.calls.append(Call(kernel, tuple(args), outputs, layer, packed))
        self._written_by_kernel.update(args[-outputs:])

    def _append(self, buffer: Buffer) -> int:
        self.program.buffers.append(buffer)
        return len(self.program.buffers) - 1

    def _may_move(self, number: int) -> bool:
        buffer = self.program.buffers[number]
        owns = buffer.parent is None and buffer.kind == "arena"
        return owns and number in self._written_by_kernel
