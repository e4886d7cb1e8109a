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


class RollingPool:
    """The rows that one task computes one after the other, each pooled when its window is full.

    Attributes
    ----------
    turns : int
        Rows that the windows reach over, those outside the convolution's output included.
    start, rows
        Where the rows inside it start, and how many there are at most.
    slices, depth
        The first slice of the convolution, if it has any, and how many there are of them.
    """

    def __init__(
        self, w: ConvWorkload, lanes: int, block: int, channels: int, first: Any, count: int,
        at: Sequence[Any] = (), last: int | None = None,
    ) -> None:  # fmt: skip
        assert w.pool is not None
        self._w, self._pool, self._first, self._channels = w, w.pool, first, channels
        self._kernel, self._stride = w.pool.kernel[-2], w.pool.strides[-2]
        self._count, self._unit, self._at = count, lanes if block else 1, at
        self.depth = slices_needed(w)
        self.slices = tuple(x * self.depth for x in at)
        self._base = first * self._stride - w.pool.pad_before[-2]
        self.turns = (count - 1) * self._stride + self._kernel
        self.rows = rows_needed(w, count)
        self.start = first_row(w, first, count, last)
        self._kept = PooledRows(
            w, lanes, block, channels, self._base, self._kernel, ring=True, at=at
        )

    @contextlib.contextmanager
    def row(self, turn: Any) -> Iterator[Any]:
        """The row of a turn; what follows is done only if some window needs it."""
        row, height = self._base + turn, self._w.conv_spatial[-2]
        needed = []
        if self._pool.pad_before[-2]:
            needed.append(row >= 0)
        last = (self._pool.out_spatial[-2] - 1) * self._stride + self._kernel
        if last - self._pool.pad_before[-2] > height:
            needed.append(row < height)
        if self._kernel < self._stride:
            needed.append(turn % self._stride < self._kernel)
        with when(needed):
            yield row

    def put(self, channel: Any, row: Any, place: Any, value: tirx.Expr, part: Any) -> None:
        self._kept.put(channel, row, place, value, part)

    def prefetch(self, out: Any, lead: Sequence[Any], turn: Any, part: Any, parts: int) -> None:
        """Ask for one of `parts` parts of the output's row that is pooled next, in all channels.

        `lead` is what comes before the row in the first channel's index. Without it the stores of
        a whole row, all at once, would wait for their lines.
        """
        beyond = turn - (self._kernel - self._stride)
        row = self._first + tirx.min(tirx.max(beyond, 0) // self._stride, self._count - 1)
        step = emit.LINE_BYTES // 4
        lines = -(-self._pool.out_spatial[-1] * self._unit // step)
        share = -(-lines // parts)
        for channel in range(self._channels):
            for i in range(share):
                place = tirx.min((part * share + i) * step, (lines - 1) * step)
                at = (*lead[:-1], lead[-1] + channel, *self._at, row)
                emit.prefetch(out, (*at, place // self._unit, place % self._unit), 2)

    def finish(self, turn: Any, store: Callable[[Any, Any, Any, Any, tirx.Expr], None]) -> None:
        """Pool the row whose window this turn fills, if any, in all channels.

        `store` takes channel, row, column, lane and the result.
        """
        beyond = turn - (self._kernel - 1)
        full = [beyond >= 0] if self._kernel > 1 else []
        if self._stride > 1:
            full.append(beyond % self._stride == 0)
        with when(full), emit.loop(self._channels) as channel:
            row = self._first + beyond // self._stride
            self._kept.pool(
                channel, row, lambda x, lane, value: store(channel, row, x, lane, value)
            )


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
