"""The transposed copy of what one task of a sparse product reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit
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

    def source(row: Any, step: Any) -> Any:
        return place(tirx.min(row, b.chunk - 1) if b.chunk % b.width else row, step)

    if b.steps < b.width:
        with emit.nest((b.positions * b.width, b.steps)) as (row, step):
            T.buffer_store(copy, left[source(row, step)], [step * b.pitch + row])
        return
    with emit.nest((b.positions, -(-b.steps // b.width))) as (s, block):
        row, step = s * b.width, cuts.panel_start(block, b.width, b.steps)
        transpose(
            b.width,
            "float32",
            lambda i: vector_at(left, [source(row + i, step)], b.width),
            lambda j, column: store_vector(copy, column, [(step + j) * b.pitch + row], b.width),
        )
