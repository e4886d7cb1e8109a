"""The copy of the rows that one task of an FKW convolution reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.fkw_geometry import FkwGeometry

_ZERO = tirx.const(0.0, "float32")
# Of an element, given its vector of the row and its lane.
Load = Callable[[Any, Any], tirx.Expr]
Store = Callable[[Any, Any, tirx.Expr], None]


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
                load = _loader(g, part, data, (n, c, y), start)
                plane = c * g.plane + block * g.block_lanes
                store = _storer(g, part, copy, plane, i)
                with T.If(tirx.all(y >= 0, y < g.spatial[0])):
                    with T.Then():
                        _copy_row(g, part, load, store)
                    with T.Else():
                        _blank(g, 0, store)
    return copy


def _loader(g: FkwGeometry, part: int, data: Any, row: tuple[Any, ...], start: Any) -> Load:
    step, first = g.stride[1], g.parts[part][1]

    def load(vector: Any, lane: Any) -> tirx.Expr:
        x = (start + vector * g.lanes + lane) * step + first
        if g.whole or g.columns_of(part) == g.columns:
            return data[(*row, x)]
        # The last strip is of the longest part.
        return tirx.if_then_else(x < g.spatial[1], data[(*row, x)], _ZERO)

    return load


def _storer(g: FkwGeometry, part: int, copy: Any, plane: Any, row: Any) -> Store:
    def store(vector: Any, lane: Any, value: tirx.Expr) -> None:
        T.buffer_store(copy, value, [plane + g.place(part, vector, row) + lane])

    return store


def _copy_row(g: FkwGeometry, part: int, load: Load, store: Store) -> None:
    """The columns of a part, and zeros up to the end of the copied row."""
    lanes = g.block_lanes
    count = min(g.strip * lanes, g.columns_of(part)) if g.whole else g.width
    full, rest = divmod(count, lanes)

    def columns(vector: Any, count: int) -> None:
        if g.stride[1] == 1:
            _cover(0, count, lanes, lambda lane: store(vector, lane, load(vector, lane)))
        else:
            with emit.loop(count) as lane:
                store(vector, lane, load(vector, lane))

    with emit.loop(full) as vector:
        columns(vector, lanes)
    if rest:
        columns(full, rest)
        _cover(rest, lanes - rest, lanes, lambda lane: store(full, lane, _ZERO))
        full += 1
    _blank(g, full, store)


def _blank(g: FkwGeometry, first: int, store: Store) -> None:
    """Zeros in the vectors from `first` on."""
    if first < g.strip:
        with emit.loop(g.strip - first) as vector:
            lanes = g.block_lanes
            _cover(0, lanes, lanes, lambda lane: store(first + vector, lane, _ZERO))


def _cover(first: int, count: int, lanes: int, body: Callable[[Any], None]) -> None:
    """Call `body(lane)` for [first, first + count), in vectors."""

    def run(at: Any, width: int) -> None:
        with emit.loop(width, "vectorized") as lane:
            body(first + at + lane)

    emit.cover(count, lanes, run)
