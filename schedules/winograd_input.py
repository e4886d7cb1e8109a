"""The input of Winograd convolution, one block of channels at a time.

A task's rows of a block are padded into a copy of the size of the L1 cache, from which the tiles
are transformed: copied from memory, or computed there by a producer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.producer_rows import padded_row, producer_rows
from tvm_ext.schedules.row_copy import copy_row, row_bounds
from tvm_ext.target import CpuTarget

# Called for a block of channels with the function of (row, column, lane) that reads its rows.
Body = Callable[[Any, Callable[[Any, Any, Any], tirx.Expr]], None]


class TileInput(Protocol):
    """Makes the padded rows that tiles are transformed from."""

    def view(self, data: Any) -> None:
        """Declare views, after the last of the kernel's arguments."""

    def begin(self, n: Any) -> None:
        """Prepare a task, which is of image `n`."""

    def each(self, strip: Any, start: Any, rows: int, body: Body) -> None:
        """Call `body` for every block of channels, of `rows` rows before whose first `start` are.

        `strip` counts the calls of a task.
        """


class CopiedInput:
    """Rows from memory, or rows that a pool or an enlargement makes.

    `length` are the columns of a padded row, `reach` the rows that all tiles reach.
    """

    def __init__(self, w: ConvWorkload, length: int, reach: int, target: CpuTarget) -> None:
        self._w, self._length, self._reach, self._lanes = w, length, reach, target.lanes
        self._rows = producer_rows(w.producer, target) if w.producer else None

    def view(self, data: Any) -> None:
        self._data = data

    def begin(self, n: Any) -> None:
        self._n = n
        self._row_of = self._rows.begin(self._data) if self._rows else None

    def each(self, strip: Any, start: Any, rows: int, body: Body) -> None:
        w, v = self._w, self._lanes
        with emit.loop(-(-w.in_channels // v)) as block:
            plane = emit.workspace((rows, self._length, v))
            with emit.loop(rows) as i:
                y = start + i - w.pad_before[0]
                bounds = row_bounds([y], w.spatial, w.pad_before, (self._reach,))
                if self._row_of is None:
                    copy_row(
                        w.spatial[1], w.pad_before[1], self._length, bounds,
                        lambda x, lane, y=y: self._data[self._n, block, y, x, lane],
                        lambda _, j, lane, value, i=i: T.buffer_store(plane, value, [i, j, lane]),
                        lanes=v,
                    )  # fmt: skip
                else:
                    padded_row(
                        self._row_of, self._n, block, y, bounds, plane, (i,),
                        (w.pad_before[1], w.spatial[1], self._length), v,
                    )  # fmt: skip
            body(block, lambda i, j, lane: plane[i, j, lane])
