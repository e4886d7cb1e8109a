"""The input of a convolution as its inner loop reads it: in place, or staged into a local copy.

Staging pads and subsamples the rows that one task needs, so that the copy is still in cache when
the task's multiply-adds read it. It also applies the prologue, if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_prologue import processed
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.row_copy import copy_row, row_bounds


def lifted_input(w: ConvWorkload, g: ConvGeometry, data: Any, block: int) -> Any:
    """View the input under the geometry's spatial dimensions."""
    if block:
        return emit.view(data, (w.batch, -(-w.in_channels // block), *g.spatial, block))
    return emit.view(data, (w.batch, w.in_channels, *g.spatial))


@dataclass(frozen=True)
class Source:
    """Where the inner loop loads from.

    Attributes
    ----------
    buffer : Buffer
        (n, channels, *spatial) in place, (channels, *spatial) of one task when staged; with a
        last lane dimension when blocked.
    staged : bool
        Whether `buffer` is a task's local copy.
    part : index
        Slices between the task's first and the one at hand.
    """

    buffer: Any
    staged: bool
    part: Any = 0

    def load(
        self, g: ConvGeometry, n: Any, group: Any, per_group: int, channel: Any, inner: Any,
        row: Any, column: Any, taps: Any, block: int, origin: Sequence[Any],
    ) -> tirx.Expr:  # fmt: skip
        """Element for input channel group * per_group + channel + inner at an output position.

        The position is `row` rows after the task's `origin`; see `stage`.
        """
        base = channel if self.staged else group * per_group + channel
        at: tuple[Any, ...]
        if g.flat:
            # A flat task's own positions start at its origin in the tensor, at 0 in its copy.
            at = (0, column if self.staged else origin[0] + column)
        else:
            start = [0] * len(origin) if self.staged else [*origin]
            start[0] = start[0] + self.part
            position = (*start[:-1], start[-1] + row, column)
            at = tuple(
                p * s + tap * d
                for p, s, tap, d in zip(position, g.stride, taps, g.dilation, strict=True)
            )
        lead: tuple[Any, ...] = () if self.staged else (n,)
        if not block:
            return self.buffer[(*lead, base + inner, *at)]
        lane = base % block + inner
        return self.buffer[(*lead, base // block, *at, lane)]


def staged_extents(g: ConvGeometry, count: int, depth: int = 1) -> tuple[int, ...]:
    """Spatial extents of what a task of `count` rows, of each of `depth` slices, stages."""
    if g.flat:
        return (count, *g.staged[1:]) if g.must_stage else (1, count)
    *slices, rows = (d * (k - 1) + 1 for d, k in zip(g.dilation, g.kernel[:-1], strict=False))
    if slices:
        slices[0] += (depth - 1) * g.stride[0]
    return (*slices, (count - 1) * g.stride[-2] + rows, g.staged[-1])


def stage(
    w: ConvWorkload, g: ConvGeometry, data: Any, block: int,
    n: Any, group: Any, origin: Sequence[Any], count: int, constants: Sequence[Any] = (),
    room: int = 0, depth: int = 1,
) -> Source:  # fmt: skip
    """Copy what one task reads after the prologue, whose `constants` it takes, padded with zeros.

    A task computes `count` rows of one group, which start at `origin` in the output's dimensions
    without the last: rows of each of `depth` slices, where there are three dimensions. A flat
    convolution's counts in the first dimension of what it stages.

    With `room` for so many rows the copy is flat, and elements lie in it as if there were so many.
    """
    per_group = w.in_channels // w.groups
    lanes = block or 1
    # A group may start inside a block: then the copy is of its own channels, lane by lane.
    aligned = bool(block) and (w.groups == 1 or per_group % block == 0)
    channels = -(-per_group // lanes)
    local = staged_extents(g, count, depth)
    within = staged_extents(g, room or count, depth)
    shape = (channels, *((1, prod(within)) if g.flat else within)) + ((block,) if block else ())
    copy = emit.workspace((prod(shape),) if room else shape)

    def value(c: Any, where: Sequence[Any], lane: Any) -> tirx.Expr:
        if not block:
            channel = group * per_group + c
            x = data[(n, channel, *where)]
        elif aligned:
            first = group * channels + c
            channel = first * block + lane
            x = data[(n, first, *where, lane)]
        else:
            # What the last block of a group has too much is never read; it only has to exist.
            channel = tirx.min(group * per_group + c * block + lane, w.in_channels - 1)
            x = data[(n, channel // block, *where, channel % block)]
        return processed(w, constants, channel, x)

    def put(c: Any, at: Sequence[Any], lane: Any, x: tirx.Expr) -> None:
        index = [c, *at] + ([lane] if block else [])
        T.buffer_store(copy, x, [emit.flat_index(index, shape)] if room else index)

    if g.flat:
        with (
            emit.nest((channels, *local)) as (c, *at),
            emit.loop(lanes, "vectorized") as lane,
        ):
            first = origin[0]
            position = (first + at[0], *at[1:]) if g.must_stage else (0, first + at[1])
            where = [p * s for p, s in zip(position, g.subsample, strict=True)]
            put(c, (0, emit.flat_index(at, local)), lane, value(c, where, lane))
        return Source(copy, True)

    with emit.nest((channels, *local[:-1])) as (c, *at):
        where = [x + o * s - b for x, o, s, b in zip(at, origin, g.stride, g.before, strict=False)]
        copy_row(
            g.spatial[-1], g.before[-1], local[-1],
            row_bounds(where, g.spatial, g.before, g.staged),
            lambda x, lane: value(c, [*where, x], lane),
            lambda _, j, lane, x: put(c, [*at, j], lane, x),
            lanes=lanes,
        )  # fmt: skip
    return Source(copy, True)
