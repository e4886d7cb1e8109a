"""A pool inside the kernel of a convolution: from rows that a task has just computed.

The convolution's rows go, finished, into a buffer of the task that stays in cache, and are pooled
from there: its own output never is in memory. Rows that two tasks need are computed by both.

Of three dimensions the windows must not share slices: then those of one slice of the result are
computed together, row by row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.base import YES, Support, refuse
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_line import PoolLine, line_taps, pool_seconds
from tvm_ext.target import CpuTarget

_KINDS = ("max", "avg")
_VECTORS = 4
# Cycles to take one column out of a line for a vector of such that a stride separates.
_GATHER_CYCLES = 0.7


def refuse_pool(w: ConvWorkload) -> Support:
    """Of an algorithm without a pool stage."""
    return refuse("a pool stage") if w.pool else YES


def supports_pool(w: ConvWorkload, slices: bool = False) -> Support:
    """Of an algorithm that pools in its kernel, with `slices` also of three dimensions."""
    if w.pool and w.pool.kind not in _KINDS:
        return refuse(f"a pool stage of kind {w.pool.kind!r}; only {' and '.join(_KINDS)}")
    allowed = (2, 3) if slices else (2,)
    if w.pool and len(w.spatial) not in allowed:
        only = " and ".join(map(str, allowed))
        return refuse(f"a pool stage of {len(w.spatial)} spatial dimensions; only {only}")
    if w.pool and len(w.spatial) == 3:
        depth, padding = w.pool.kernel[0], w.pool.pad_before[0] + w.pool.pad_after[0]
        if (
            depth != w.pool.strides[0]
            or padding
            or w.pool.out_spatial[0] * depth > w.conv_spatial[0]
        ):
            return refuse("a pool stage whose windows share slices, or hang over the last one")
    return YES


def slices_needed(w: ConvWorkload) -> int:
    """Slices of the convolution for one of its output: 1 where there are none."""
    return w.pool.kernel[0] if w.pool and len(w.spatial) == 3 else 1


def rows_needed(w: ConvWorkload, count: int) -> int:
    """Rows of the convolution, of all there are, for `count` rows of the output."""
    if w.pool is None:
        return count
    return min(w.conv_spatial[-2], (count - 1) * w.pool.strides[-2] + w.pool.kernel[-2])


def rows_pooled(w: ConvWorkload, rows: int) -> int:
    """Rows of the output that so many rows of the convolution are enough for."""
    if w.pool is None:
        return rows
    if rows >= w.conv_spatial[-2]:
        return w.pool.out_spatial[-2]
    return min(w.pool.out_spatial[-2], (rows - w.pool.kernel[-2]) // w.pool.strides[-2] + 1)


def repetition(w: ConvWorkload, count: int) -> float:
    """Rows that tasks of `count` rows of the output compute, over the convolution's own."""
    if w.pool is None:
        return 1.0
    full, rest = divmod(w.pool.out_spatial[-2], count)
    rows = full * rows_needed(w, count) + (rows_needed(w, rest) if rest else 0)
    return rows / w.conv_spatial[-2]


def first_row(w: ConvWorkload, first: Any, count: int, last: int | None = None) -> Any:
    """Where the rows of the convolution start that `count` rows of its pool stage need.

    As many as `rows_needed` says, from there on, are inside its output. `first` is `last` at most;
    without that anywhere in the output.
    """
    assert w.pool is not None
    stride, before, height = w.pool.strides[-2], w.pool.pad_before[-2], w.conv_spatial[-2]
    rows = rows_needed(w, count)
    larger, smaller = (max, min) if isinstance(first, int) else (tirx.max, tirx.min)
    start = first * stride
    if before:
        start = larger(start - before, 0)
    if is_cut(w, count, last):
        start = smaller(start, height - rows)
    # Bound to a variable, lest TVM simplify it anew at every use.
    return start if isinstance(start, int) else T.Bind(start)


def is_cut(w: ConvWorkload, count: int, last: int | None = None) -> bool:
    """Whether the rows from the first that `count` rows need on would leave the convolution's."""
    assert w.pool is not None
    last = w.pool.out_spatial[-2] - count if last is None else last
    start = last * w.pool.strides[-2] - w.pool.pad_before[-2]
    return start + rows_needed(w, count) > w.conv_spatial[-2]


def stage_seconds(w: ConvWorkload, target: CpuTarget, blocked: bool = True) -> float:
    """Seconds that the pool stage adds on one core; its data is in cache."""
    pool = w.pooling
    if pool is None:
        return 0.0
    # The peak has four operations a lane and cycle. A vector is written and read once more, one
    # and two a cycle.
    moved = 1.5 * prod(w.conv_shape)
    if not blocked and pool.strides[-1] > 1:
        # Columns that are a stride apart are put together one by one.
        moved += _GATHER_CYCLES * target.lanes * prod(pool.out_shape) * pool.kernel[-1]
    return 4 * moved / target.fma_peak + pool_seconds(pool, line_taps(pool), target)


class PooledRows:
    """Finished rows of some channels (or vectors of them), and the pool over them.

    `slots` rows are kept at a time, of those from `origin` on: all of them, or with `ring` the
    last. `at` is the slice of the result, if it has any.
    """

    def __init__(
        self, w: ConvWorkload, lanes: int, block: int, channels: int, origin: Any, slots: int,
        ring: bool = False, at: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        assert w.pooling is not None
        self._origin, self._slots, self._ring, self._at = origin, slots, ring, at
        self._depth = slices_needed(w)
        row = w.conv_spatial[-1] * (lanes if block else 1)
        self._buffer = emit.workspace((channels, slots * self._depth, row))
        self._line = PoolLine(w.pooling, lanes, block, _VECTORS)

    def _slot(self, row: Any, part: Any) -> Any:
        at = row - self._origin
        return (at % self._slots if self._ring else at) * self._depth + part

    def put(self, channel: Any, row: Any, place: Any, value: tirx.Expr, part: Any = 0) -> None:
        """Keep an element; `place` is the column, or column times lanes plus lane.

        `part` counts the slices of a window.
        """
        T.buffer_store(self._buffer, value, [channel, self._slot(row, part), place])

    def pool(self, channel: Any, row: Any, store: Callable[[Any, Any, tirx.Expr], None]) -> None:
        """Make row `row` of the pool stage; `store` takes the column, the lane and the result."""

        def kept(where: Sequence[Any], x: Any) -> tirx.Expr:
            part = where[0] - self._at[0] * self._depth if self._at else 0
            return self._buffer[channel, self._slot(where[-1], part), x]

        self._line.row((*self._at, row), kept, store)


@contextlib.contextmanager
def when(conditions: list[Any]) -> Iterator[None]:
    """What follows happens only if all conditions hold; without any, always."""
    if not conditions:
        yield
        return
    # Without a loop a position is a number, and so is what is known of it.
    known = [tirx.const(c, "bool") if isinstance(c, bool) else c for c in conditions]
    with T.If(tirx.all(*known)), T.Then():
        yield
