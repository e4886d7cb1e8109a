"""The planar copy of what one task of a sparse convolution reads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.row_copy import copy_row, row_bounds
from tvm_ext.schedules.sparse_geometry import SparseGeometry


def stage_planes(
    g: SparseGeometry, copy: Any, data: Any, n: Any, channel: Any, slices: Sequence[Any],
    first: Any, lanes: int,
) -> None:  # fmt: skip
    """Copy the rows of a task that starts at row (or position) `first` of the output's `slices`.

    Parameters
    ----------
    copy : Buffer
        Flat; see `SparseGeometry`.
    data : Buffer
        (batch, channels, *spatial).
    channel : int or expression
        The first of the channels.
    lanes : int
        float32 values in a vector.
    """
    if g.flat:
        with emit.loop(g.channels) as c:

            def run(at: Any, width: int) -> None:
                with emit.loop(width, "vectorized") as lane:
                    T.buffer_store(
                        copy, data[n, channel + c, 0, first + at + lane], [c * g.plane + at + lane]
                    )

            emit.cover(g.chunk, lanes, run)
        return
    origin = (*slices, first)
    # A row of the last phases may lie past what the taps reach, so every row is tested.
    reached = [extent + b + 1 for extent, b in zip(g.spatial, g.before, strict=True)]
    outer_phases, outer = g.phases[:-1], g.copied[:-1]
    with (
        emit.loop(g.channels) as c,
        emit.nest(outer_phases) as phase,
        emit.nest(outer) as at,
    ):
        where = [
            (o + x) * s + p - b
            for o, x, s, p, b in zip(origin, at, g.stride, phase, g.before, strict=False)
        ]
        copy_row(
            g.spatial[-1], g.before[-1], g.pitch,
            row_bounds(where, g.spatial, g.before, reached),
            lambda x, _: data[(n, channel + c, *where, x)],
            lambda p, x, _, value: T.buffer_store(
                copy, value, [c * g.plane + g.place((*phase, p), (*at, x))]
            ),
            stride=g.stride[-1], phases=g.phases[-1],
        )  # fmt: skip


def blank_gaps(g: SparseGeometry, copy: Any, lanes: int) -> None:
    """Zeros behind each plane, where the last vectors of its positions reach into.

    What they make of it isn't used, but subnormal numbers that happen to be there would cost some
    hundred cycles each.
    """

    def blank(first: Any, count: int) -> None:
        def run(at: Any, width: int) -> None:
            with emit.loop(width, "vectorized") as lane:
                T.buffer_store(copy, tirx.const(0.0, "float32"), [first + at + lane])

        if count:
            emit.cover(count, lanes, run)

    used = prod(g.phases) * prod(g.copied)
    with emit.loop(g.channels) as c:
        blank(c * g.plane + used, g.plane - used)
    blank(g.channels * g.plane, g.slack)
