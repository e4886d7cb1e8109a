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

    def join(
        self, parts: Sequence[int], shape: Sequence[int], dtype: str
    ) -> tuple[int, list[tuple[int, int]]] | None:
        """A buffer in whose memory the parts lie one after the other; None if they can't.

        A part can move there whose memory is all its own and has been written by a kernel (or is
        such a join itself), and that occurs once. One that can't has to be copied, which is no
        more calls than copying all of them. Each starts where kernels may start reading.

        Returns
        -------
        whole : int
        copies : list of (int, int)
            A part that stays where it is, if there is one, and its place in the whole.
        """
        sizes = [self.program.buffers[part].nbytes for part in parts]
        offsets = list(accumulate(sizes[:-1], initial=0))
        # By its owner, so that a part that occurs twice moves once.
        moved = {
            owner: i for i, part in enumerate(parts) if (owner := self._owner(part)) is not None
        }
        if not moved or len(moved) < len(parts) - 1 or any(o % ALIGNMENT for o in offsets):
            return None
        whole = self.buffer(shape, dtype)
        for owner, index in moved.items():
            self.program.buffers[owner].parent = whole
            self.program.buffers[owner].offset = offsets[index]
        self._written_by_kernel.add(whole)
        stay = [i for i in range(len(parts)) if i not in moved.values()]
        places = [self.view(whole, self.program.buffers[parts[i]].shape, offsets[i]) for i in stay]
        return whole, [(parts[i], place) for i, place in zip(stay, places, strict=True)]

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

    def _owner(self, number: int) -> int | None:
        """The buffer whose memory this one is all of, if it may move: None if it may not."""
        owner, offset = self.program.root(number)
        buffer = self.program.buffers[owner]
        whole = offset == 0 and buffer.nbytes == self.program.buffers[number].nbytes
        may_move = buffer.kind == "arena" and owner in self._written_by_kernel
        return owner if whole and may_move else None
