"""The copy of the rows that one task of an FKW convolution reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.fkw_geometry import FkwGeometry
from tvm_ext.schedules.lane_transpose import store_vector
from tvm_ext.schedules.strided_load import load_strided

_ZERO = tirx.const(0.0, "float32")


def stage_rows(g: FkwGeometry, data: Any, n: Any, first: Any, start: Any) -> Any:
    """Copy the rows of a task that starts at output row `first`, from column `start` of each part.

    Parameters
    ----------
    data : Buffer
        (batch, channels, height, width).

    Returns
    -------
    Buffer
        Flat; see `FkwGeometry`. What lies outside of the input is zero.
    """
    copy = emit.workspace((g.size,))
    with emit.loop(g.channels) as c:
        for part, (row, _) in enumerate(g.parts):
            with emit.loop(g.fold) as block, emit.loop(g.rows) as i:
                below = first + g.block_start(block) + g.first_row + i
                y = T.Bind(tirx.const(0, "int32") + below * g.stride[0] + row)
                plane = c * g.plane + block * g.block_lanes
                staged = _Row(g, part, data, (n, c, y), start, copy, plane, i)
                with T.If(tirx.all(y >= 0, y < g.spatial[0])):
                    with T.Then():
                        staged.fill()
                    with T.Else():
                        staged.blank(0)
    return copy


@dataclass(frozen=True)
class _Row:
    """A row of the input, `source` of `data`, and its part's place in the copy: row `y` of it."""

    g: FkwGeometry
    part: int
    data: Any
    source: tuple[Any, ...]
    start: Any
    copy: Any
    plane: Any
    y: Any

    def fill(self) -> None:
        """The columns of the part, and zeros up to the end of the copied row."""
        g, lanes = self.g, self.g.block_lanes
        count = min(g.strip * lanes, g.columns_of(self.part)) if g.whole else g.width
        full, rest = divmod(count, lanes)
        fast = full if g.stride[1] == 1 else min(full, self._strided())
        with emit.loop(fast) as vector:
            at = [self._place(vector)]
            index = [*self.source, self._column(vector, 0)]
            store_vector(self.copy, load_strided(self.data, index, g.stride[1], lanes), at, lanes)
        if fast < full:
            with emit.loop(full - fast) as vector:
                self._elements(fast + vector, lanes)
        if rest:
            self._elements(full, rest)
            _cover(rest, lanes - rest, lanes, lambda lane: self._store(full, lane, _ZERO))
            full += 1
        self.blank(full)

    def blank(self, first: int) -> None:
        """Zeros in the vectors from `first` on."""
        if first < self.g.strip:
            with emit.loop(self.g.strip - first) as vector:
                lanes = self.g.block_lanes
                _cover(0, lanes, lanes, lambda lane: self._store(first + vector, lane, _ZERO))

    def _elements(self, vector: Any, count: int) -> None:
        """The first columns of a vector."""
        # A vector of strided elements would be loaded one by one all the same.
        most = self.g.block_lanes if self.g.stride[1] == 1 else 1
        _cover(
            0, count, most,
            lambda lane: self._store(vector, lane, self._element(vector, lane)),
        )  # fmt: skip

    def _strided(self) -> int:
        """Vectors of which everything up to the next one's first element is in the row."""
        if not self.g.whole:
            return self.g.strip - 1
        step, first = self.g.stride[1], self.g.parts[self.part][1]
        return (self.g.spatial[1] - first) // (step * self.g.block_lanes)

    def _column(self, vector: Any, lane: Any) -> Any:
        step, first = self.g.stride[1], self.g.parts[self.part][1]
        return (self.start + vector * self.g.lanes + lane) * step + first

    def _element(self, vector: Any, lane: Any) -> tirx.Expr:
        x = self._column(vector, lane)
        if self.g.whole or self.g.columns_of(self.part) == self.g.columns:
            return self.data[(*self.source, x)]
        # The last strip is of the longest part.
        return tirx.if_then_else(x < self.g.spatial[1], self.data[(*self.source, x)], _ZERO)

    def _store(self, vector: Any, lane: Any, value: tirx.Expr) -> None:
        T.buffer_store(self.copy, value, [self._place(vector) + lane])

    def _place(self, vector: Any) -> Any:
        return self.plane + self.g.place(self.part, vector, self.y)


def _cover(first: int, count: int, lanes: int, body: Callable[[Any], None]) -> None:
    """Call `body(lane)` for [first, first + count), in vectors."""

    def run(at: Any, width: int) -> None:
        with emit.loop(width, "vectorized") as lane:
            body(first + at + lane)

    emit.cover(count, lanes, run)
