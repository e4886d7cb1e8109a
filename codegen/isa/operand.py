"""What an instruction reads or writes: a box of values in SRAM or in system memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SRAM, MEMORY = "SRAM", "system memory"


@dataclass(frozen=True, slots=True)
class Operand:
    """A box of `shape` = (rows, pixels, channels) values, channels next to each other.

    Attributes
    ----------
    name : str
        What messages call it.
    space : str
        `SRAM` or `MEMORY`.
    address : int
        Of the first value, in bytes.
    shape : tuple of int
        Rows, pixels of a row, channels of a pixel.
    row_pitch, pixel_pitch : int
        Bytes from one row, one pixel to the next.
    dtype : str
        ``int8``, ``int32``, ``float32`` or ``uint8``; little-endian.
    """

    name: str
    space: str
    address: int
    shape: tuple[int, int, int]
    row_pitch: int
    pixel_pitch: int
    dtype: str

    @property
    def run(self) -> int:
        """Bytes of one pixel."""
        return self.shape[2] * _ITEM_BYTES[self.dtype]

    @property
    def end(self) -> int:
        """Address behind the last byte."""
        rows, pixels, _ = self.shape
        return (
            self.address + (rows - 1) * self.row_pitch + (pixels - 1) * self.pixel_pitch + self.run
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return self.shape[0] * self.shape[1] * self.run

    @property
    def item_bytes(self) -> int:
        """Bytes of one value."""
        return _ITEM_BYTES[self.dtype]

    @property
    def runs(self) -> tuple[tuple[int, int], tuple[int, int], int]:
        """The bytes as ((count, stride), (count, stride), run), neighbours joined to long runs."""
        (rows, pixels, _), run = self.shape, self.run
        if pixels == 1 or self.pixel_pitch == run:
            run *= pixels
            if rows == 1 or self.row_pitch == run:
                return (1, 0), (1, 0), rows * run
            return (1, 0), (rows, self.row_pitch), run
        if rows == 1:
            return (1, 0), (pixels, self.pixel_pitch), run
        if self.row_pitch == pixels * self.pixel_pitch:
            return (1, 0), (rows * pixels, self.pixel_pitch), run
        return (rows, self.row_pitch), (pixels, self.pixel_pitch), run

    @property
    def overlaps_itself(self) -> bool:
        """Whether two of its values may share a byte, which no result may."""
        (outer, outer_stride), (inner, inner_stride), run = self.runs
        levels = sorted(
            (stride, count)
            for stride, count in ((outer_stride, outer), (inner_stride, inner))
            if count > 1
        )
        for stride, count in levels:
            if stride < run:
                return True
            run += (count - 1) * stride
        return False

    def view(self, space: np.ndarray) -> np.ndarray:
        """Its values in the flat uint8 array of its space, not copied."""
        strides = (self.row_pitch, self.pixel_pitch, _ITEM_BYTES[self.dtype])
        view: np.ndarray = np.ndarray(self.shape, _NUMPY[self.dtype], space, self.address, strides)
        return view

    def bytes_in(self, flags: np.ndarray, base: int = 0) -> np.ndarray:
        """The elements that are its bytes, of an array with one a byte from address `base` on."""
        (outer, outer_stride), (inner, inner_stride), run = self.runs
        begin = self.address - base
        if outer == inner == 1:
            return flags[begin : begin + run]
        step = flags.itemsize
        elements: np.ndarray = np.ndarray(
            (outer, inner, run),
            flags.dtype,
            flags,
            begin * step,
            (outer_stride * step, inner_stride * step, step),
        )
        return elements

    def shares_bytes(self, other: Operand) -> bool:
        """Whether both have a byte in common, exactly: interleaved boxes may have none."""
        if self.space != other.space or self.address >= other.end or other.address >= self.end:
            return False
        if self.nbytes == self.end - self.address and other.nbytes == other.end - other.address:
            return True
        base = min(self.address, other.address)
        flags = np.zeros(max(self.end, other.end) - base, bool)
        self.bytes_in(flags, base)[...] = True
        return bool(other.bytes_in(flags, base).any())


_ITEM_BYTES = {"int8": 1, "uint8": 1, "int32": 4, "float32": 4}
_NUMPY = {name: np.dtype(name).newbyteorder("<") for name in _ITEM_BYTES}


def dense(name: str, address: int, shape: tuple[int, int, int], dtype: str) -> Operand:
    """A box in SRAM whose values follow each other."""
    pixel = shape[2] * _ITEM_BYTES[dtype]
    return Operand(name, SRAM, address, shape, shape[1] * pixel, pixel, dtype)
