"""A pool inside the kernel of a convolution whose task computes its rows one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm import tirx

from tvm_ext.schedules import emit
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_stage import (
    PooledRows,
    first_row,
    rows_needed,
    slices_needed,
    when,
)


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
