"""Transpose a square tile in vector registers: rows of vectors in, columns as vectors out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

# Vector units shuffle within groups of four 32-bit lanes at full speed, and move whole groups.
_GROUP = 4


def vector_at(buffer: Any, index: list[Any], lanes: int) -> tirx.Expr:
    """`lanes` neighbouring elements that start at `index`."""
    return buffer[(*index[:-1], tirx.Ramp(tirx.const(0, "int32") + index[-1], 1, lanes))]


def store_vector(buffer: Any, value: tirx.Expr, index: list[Any], lanes: int) -> None:
    """Write `lanes` neighbouring elements that start at `index`."""
    at = [*index[:-1], tirx.Ramp(tirx.const(0, "int32") + index[-1], 1, lanes)]
    T.buffer_store(buffer, value, at)


def hold_vector(value: tirx.Expr, dtype: str, lanes: int) -> tirx.Expr:
    """A vector computed once, here, however often the result is used."""
    buffer = T.alloc_buffer((lanes,), dtype, scope="global")
    store_vector(buffer, value, [0], lanes)
    return vector_at(buffer, [0], lanes)


def transpose(
    lanes: int, dtype: str, load: Callable[[int], tirx.Expr], store: Callable[[int, Any], None]
) -> None:
    """Read `lanes` row vectors with `load(i)`, write column vectors with `store(j, vector)`.

    First each 4x4 group is transposed by two interleaving steps, then groups change places, half
    the tile at a time: log2(lanes) two-input shuffles for each vector.
    """
    rows = _bind(lanes, dtype, [load(i) for i in range(lanes)])
    rows = _bind(lanes, dtype, _step(rows, lanes, _interleave))
    rows = _bind(lanes, dtype, _step(rows, lanes, _pair))
    distance = _GROUP
    while distance < lanes:
        rows = _bind(lanes, dtype, _swap(rows, lanes, distance))
        distance *= 2
    for j, row in enumerate(rows):
        store(j, row)


def _bind(lanes: int, dtype: str, vectors: list[tirx.Expr]) -> list[tirx.Expr]:
    """Give each vector a register, so that later uses don't repeat its computation."""
    return [hold_vector(vector, dtype, lanes) for vector in vectors]


def _shuffle(a: tirx.Expr, b: tirx.Expr, lanes: int, picks: list[int]) -> tirx.Expr:
    """Picks within every group of four: 0 to 3 from `a`, 4 to 7 from `b`."""
    indices = [
        group + p if p < _GROUP else lanes + group + p - _GROUP
        for group in range(0, lanes, _GROUP)
        for p in picks
    ]
    return tirx.Shuffle([a, b], [tirx.const(i, "int32") for i in indices])


def _interleave(a: tirx.Expr, b: tirx.Expr, lanes: int) -> tuple[tirx.Expr, tirx.Expr]:
    return _shuffle(a, b, lanes, [0, 4, 1, 5]), _shuffle(a, b, lanes, [2, 6, 3, 7])


def _pair(a: tirx.Expr, b: tirx.Expr, lanes: int) -> tuple[tirx.Expr, tirx.Expr]:
    return _shuffle(a, b, lanes, [0, 1, 4, 5]), _shuffle(a, b, lanes, [2, 3, 6, 7])


def _step(rows: list[tirx.Expr], lanes: int, both: Callable[..., Any]) -> list[tirx.Expr]:
    """One of the two steps of the 4x4 transposes."""
    out: list[tirx.Expr] = []
    for i in range(0, lanes, _GROUP):
        a, b, c, d = rows[i : i + _GROUP]
        if both is _interleave:
            low, high = both(a, b, lanes), both(c, d, lanes)
            out += [low[0], high[0], low[1], high[1]]
        else:
            out += [*both(a, b, lanes), *both(c, d, lanes)]
    return out


def _swap(rows: list[tirx.Expr], lanes: int, distance: int) -> list[tirx.Expr]:
    """Exchange the upper part of row i with the lower part of row i + distance."""
    out = list(rows)
    for i in range(lanes):
        if i & distance:
            continue
        low = [x if not x & distance else lanes + x - distance for x in range(lanes)]
        high = [x + distance if not x & distance else lanes + x for x in range(lanes)]
        for at, picks in ((i, low), (i + distance, high)):
            indices = [tirx.const(x, "int32") for x in picks]
            out[at] = tirx.Shuffle([rows[i], rows[i + distance]], indices)
    return out
