"""The transposed copy of what one task of a sparse product reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.lane_transpose import store_vector, transpose, vector_at
from tvm_ext.schedules.sparse_matmul_blocking import SparseBlocking


def stage_columns(
    b: SparseBlocking, copy: Any, left: Any, place: Callable[[Any, Any], Any]
) -> None:
    """Copy a part of the columns of a task's rows.

    Parameters
    ----------
    copy : Buffer
        Flat; columns `b.pitch` apart, of whole vectors of rows. What the last vector has too many
        repeat the last row.
    left : Buffer
        Flat.
    place : callable
        Where `left` has a row of the task and a column of the part.
    """

    def squares(row: Any, rows: int) -> None:
        def square(step: Any, lanes: int) -> None:
            transpose(
                lanes,
                "float32",
                lambda i: vector_at(left, [place(row + min(i, rows - 1), step)], lanes),
                lambda j, column: store_vector(copy, column, [(step + j) * b.pitch + row], lanes),
            )

        if b.steps >= b.width:
            emit.cover(b.steps, b.width, square)
            return
        with emit.loop(b.steps) as step:
            for i in range(b.width):
                value = left[place(row + min(i, rows - 1), step)]
                T.buffer_store(copy, value, [step * b.pitch + row + i])

    with emit.loop(b.chunk // b.width) as s:
        squares(s * b.width, b.width)
    if rest := b.chunk % b.width:
        squares(b.chunk - rest, rest)
