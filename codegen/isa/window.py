"""The window that slides over an input tile: convolutions and pools share it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tvm_ext.codegen.isa.operation import Operation

WINDOW_REGISTERS = (
    "in_height", "in_width", "out_height", "out_width", "kernel_height", "kernel_width",
    "stride_height", "stride_width", "dilation_height", "dilation_width", "pad_top", "pad_left",
)  # fmt: skip

KERNEL_LIMIT = 256
"""Largest side of a window."""


@dataclass(frozen=True, slots=True)
class Window:
    """Output pixel (y, x) and tap (i, j) meet input pixel
    (y * stride_height + i * dilation_height - pad_top, likewise x); outside the tile is padding.
    """

    in_height: int
    in_width: int
    out_height: int
    out_width: int
    kernel_height: int
    kernel_width: int
    stride_height: int
    stride_width: int
    dilation_height: int
    dilation_width: int
    pad_top: int
    pad_left: int

    @classmethod
    def of(cls, operation: Operation) -> Window:
        """The window that the registers describe."""
        for name in ("kernel_height", "kernel_width"):
            if operation.whole(name) > KERNEL_LIMIT:
                operation.refuse(
                    f"register {name} is {operation.whole(name)}; allowed: 1 to {KERNEL_LIMIT}"
                )
        sizes = {name: operation.size(name) for name in WINDOW_REGISTERS[:-2]}
        pads = {name: operation.whole(name) for name in WINDOW_REGISTERS[-2:]}
        return cls(**sizes, **pads)

    @property
    def pixels(self) -> int:
        """Output pixels."""
        return self.out_height * self.out_width

    @property
    def taps(self) -> int:
        """Taps of the window."""
        return self.kernel_height * self.kernel_width

    def meets(self, i: int, j: int) -> tuple[slice, slice, slice, slice] | None:
        """Where tap (i, j) meets the tile: output rows and pixels, input rows and pixels.

        None if it meets padding alone.
        """
        rows = _meets(
            i * self.dilation_height - self.pad_top,
            self.stride_height,
            self.in_height,
            self.out_height,
        )
        columns = _meets(
            j * self.dilation_width - self.pad_left,
            self.stride_width,
            self.in_width,
            self.out_width,
        )
        if rows is None or columns is None:
            return None
        return rows[0], columns[0], rows[1], columns[1]

    def taps_at(self) -> Iterator[tuple[int, int]]:
        """Row and column of each tap."""
        for i in range(self.kernel_height):
            for j in range(self.kernel_width):
                yield i, j

    def rows(self, first: int, count: int) -> Window:
        """The part that computes `count` output rows from row `first` on, of the same tile."""
        # The tile begins further up as seen from there: that is padding of the other sign.
        return replace(self, out_height=count, pad_top=self.pad_top - first * self.stride_height)

    def patches(self, image: np.ndarray, padding: int, dtype: type) -> np.ndarray:
        """(in_height, in_width, channels) to (pixels, taps * channels): each pixel's window."""
        channels = image.shape[2]
        if self.taps == 1 and image.shape[:2] == (self.out_height, self.out_width):
            whole = self.meets(0, 0)
            if (
                whole
                and whole[0] == slice(0, self.out_height) == whole[2]
                and (whole[1] == slice(0, self.out_width) == whole[3])
            ):
                return image.astype(dtype).reshape(self.pixels, channels)
        shape = (self.out_height, self.out_width, self.kernel_height, self.kernel_width, channels)
        patches: np.ndarray = np.full(shape, padding, dtype)
        for i, j in self.taps_at():
            if met := self.meets(i, j):
                patches[met[0], met[1], i, j] = image[met[2], met[3]]
        return patches.reshape(self.pixels, self.taps * channels)


def _meets(offset: int, stride: int, extent: int, count: int) -> tuple[slice, slice] | None:
    """The n in [0, count) with 0 <= offset + n * stride < extent, and those places."""
    first = max(0, -(offset // stride))
    last = min(count - 1, (extent - 1 - offset) // stride)
    if first > last:
        return None
    begin = offset + first * stride
    return slice(first, last + 1), slice(begin, offset + last * stride + 1, stride)
