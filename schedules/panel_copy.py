"""Copies of the panels of a right side that is only known at run time, to where they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit, gemm
from tvm_ext.schedules.lane_transpose import store_vector, transpose, vector_at
from tvm_ext.schedules.strided_view import StridedView

# Cycles to copy one element, by the way in which it is done.
CYCLES = {"vectors": 0.35, "squares": 0.4, "elements": 1.2}


def readable(view: StridedView, lanes: int) -> bool:
    """Whether vectors of columns can be loaded from a right side in place."""
    return view.strides[-1] == 1 and view.shape[-1] >= lanes


def copy_way(rhs: StridedView, steps: int, lanes: int) -> str:
    """How panels of `steps` rows of a (*batch, k, n) view are copied.

    "vectors" of neighbouring columns; "squares" that are transposed in registers, where steps are
    neighbours in memory instead; "elements" one by one, where neither is or a vector doesn't fit.
    """
    k_stride, n_stride = rhs.strides[-2:]
    if rhs.shape[-1] < lanes:
        return "elements"
    if n_stride == 1:
        return "vectors"
    return "squares" if k_stride == 1 and steps >= lanes else "elements"


def copy_panel(
    way: str, b: gemm.Blocking, local: Any, flat: Any, at: Callable[[Any, Any], Any],
    first: Any = 0,
) -> None:  # fmt: skip
    """Copy one panel to `local` (steps, blocks, lanes), whose step `first` it starts at.

    `at` gives the place in `flat` of a step of the part and a column of the panel.
    """
    if way != "squares":
        width, kind = min(b.lanes, b.n), "vectorized" if way == "vectors" else "serial"
        with emit.nest((b.steps, b.blocks)) as (step, c), emit.loop(width, kind) as i:
            T.buffer_store(local, flat[at(step, c * b.lanes + i)], [first + step, c, i])
        return
    with emit.loop(b.blocks) as c:

        def square(step: Any, lanes: int) -> None:
            transpose(
                lanes,
                "float32",
                lambda i: vector_at(flat, [at(step, c * lanes + i)], lanes),
                lambda j, column: store_vector(local, column, [first + step + j, c, 0], lanes),
            )

        emit.cover(b.steps, b.lanes, square)
