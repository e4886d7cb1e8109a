"""The words that the inner loop of an int8 convolution reads: in place, or from a local copy.

The copy holds what one task reads. It pads with the zero point, gives bytes the sign that the
instruction takes, widens them for instructions on 16 or 32 bits, and puts the channels of a plain
tensor together. It is written and read as words alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit, vectors
from tvm_ext.schedules.dot_product import DotProduct
from tvm_ext.schedules.quantized_geometry import QuantizedGeometry
from tvm_ext.schedules.quantized_workload import QuantizedConvWorkload

Index = Any
# Flips the sign bits of a word of four bytes, which adds 128 to each or takes it away.
_SIGNS = 0x80808080 - (1 << 32)


@dataclass(frozen=True)
class Words:
    """Where data words are.

    Attributes
    ----------
    buffer : Buffer
        int32 (blocks, rows, columns * lane words), of one task, whose first row is the first that
        it reads; in place with a batch dimension before, and all rows.
    staged : bool
    """

    buffer: Any
    staged: bool


class Stager:
    """Makes the words of one convolution's tasks.

    Parameters
    ----------
    data : Buffer
        The argument.
    block : int
        Its channel block, 0 for a plain tensor.
    """

    def __init__(
        self, w: QuantizedConvWorkload, g: QuantizedGeometry, dot: DotProduct, data: Any,
        block: int, lanes: int,
    ) -> None:  # fmt: skip
        self.w, self.g, self.dot, self.block, self.lanes = w, g, dot, block, lanes
        planes = data.shape[1]
        row = g.spatial[1] * (block or 1)
        self._shift = dot.shift(w.dtype)
        self._bytes = emit.view(data, (w.batch, planes, g.spatial[0], row), w.dtype)
        self._words = None
        if block and dot.group == 4:
            shape = (w.batch, planes, g.spatial[0], row // 4)
            self._words = emit.view(data, shape, "int32")

    def in_place(self) -> Words:
        """The words of the tensor itself, which has to be in blocks of unpadded bytes."""
        return Words(self._words, False)

    def staged(self, n: Index, first: Index, count: int) -> Words:
        """A copy of what `count` rows (or positions) of the output from `first` on read."""
        g, lanes = self.g, self.lanes
        rows, columns = (1, count) if g.flat else (g.rows(count), g.columns)
        blocks = -(-g.words // g.lane_words)
        copy = emit.workspace((blocks, rows, columns * g.lane_words), "int32")
        border = tirx.const(self.dot.word(self.w.x_zero + self._shift), "int32")

        def put(b: Index, r: Index, column: int, at: Index, x: tirx.Expr, size: int) -> None:
            vectors.store(copy, x, [b, r, column * g.lane_words + at], size)

        def blank(b: Index, r: Index, start: int, stop: int) -> None:
            if start < stop:
                span = (stop - start) * g.lane_words
                fill = partial(put, b, r, start)
                emit.cover(span, lanes, lambda at, n: fill(at, vectors.spread(border, n), n))

        with emit.loop(blocks) as b, emit.loop(rows) as r:
            if g.flat:
                self._copy(n, b, 0, first, columns, partial(put, b, 0, 0))
                return Words(copy, True)
            row = first * g.stride[0] + r - g.before[0]
            left = min(columns, g.before[1])
            right = max(left, min(columns, g.spatial[1] + g.before[1]))

            def inside() -> None:
                blank(b, r, 0, left)
                if left < right:
                    self._copy(
                        n, b, row, left - g.before[1], right - left, partial(put, b, r, left)
                    )
                blank(b, r, right, columns)

            if not g.padded:
                inside()
                return Words(copy, True)
            with T.If(tirx.all(row >= 0, row < g.spatial[0])):
                with T.Then():
                    inside()
                with T.Else():
                    blank(b, r, 0, columns)
        return Words(copy, True)

    def _copy(
        self, n: Index, b: Index, row: Index, column: Index, count: int,
        put: Callable[[Index, tirx.Expr, int], None],
    ) -> None:  # fmt: skip
        """The words of `count` positions from `column` of the input on."""
        words = count * self.g.lane_words
        if self.block:
            start = column * self.g.lane_words
            emit.cover(
                words, self.lanes,
                lambda at, size: put(at, self._blocked([n, b, row, start + at], size), size),
            )  # fmt: skip
        else:
            emit.cover(
                words, self.lanes,
                lambda at, size: put(at, self._joined(n, b, [row, column + at], size), size),
            )  # fmt: skip

    def _blocked(self, at: list[Index], size: int) -> tirx.Expr:
        """Words at a place in words of a tensor in channel blocks."""
        if self._words is not None:
            return self._signed(vectors.load(self._words, at, size), size)
        group = self.dot.group
        values = vectors.load(self._bytes, [*at[:-1], at[-1] * group], size * group)
        wide = vectors.cast(values, f"int{32 // group}", size * group)
        return wide if group == 1 else vectors.reinterpret(wide, "int32", size)

    def _joined(self, n: Index, word: Index, at: list[Index], size: int) -> tirx.Expr:
        """A word of channels at neighbouring positions of a plain tensor.

        What is past the last channel meets weights that are zero: it only has to exist.
        """
        group, last = self.dot.group, self.w.in_channels - 1
        bits = 32 // group
        total: Any = None
        for j in range(group):
            channel = word * group + j
            if isinstance(channel, int):
                channel = min(channel, last)
            elif self.w.in_channels % group:
                channel = tirx.min(channel, last)
            x = vectors.cast(vectors.load(self._bytes, [n, channel, *at], size), "int32", size)
            if self.w.dtype == "int8" and j < group - 1:
                x = x & vectors.constant((1 << bits) - 1, "int32", size)
            if j:
                x = x << vectors.constant(bits * j, "int32", size)
            total = x if total is None else total | x
        return self._signed(total, size)

    def _signed(self, words: tirx.Expr, size: int) -> tirx.Expr:
        """Words whose bytes have the sign that the instruction takes."""
        return flipped(words, size) if self._shift else words


def flipped(words: tirx.Expr, size: int) -> tirx.Expr:
    """Words of bytes of the other sign: 128 more, or less."""
    signs = tirx.const(_SIGNS, "int32")
    return words ^ vectors.spread(signs, size)
