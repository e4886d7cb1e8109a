"""The input of a convolution in vectors of columns: a padded copy of the rows that a task reads."""

from __future__ import annotations

from typing import Any

from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.conv_columns import ColumnGeometry
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.row_copy import copy_row, row_bounds


def stage_columns(
    w: ConvWorkload,
    g: ColumnGeometry,
    tile: int,
    data: Any,
    n: Any,
    group: Any,
    first: Any,
    count: int,
) -> Any:
    """What output rows [first, first + count) of one image and group read.

    Returns
    -------
    Buffer
        (C / tile, *outer, tile, phases, columns) for C channels a group: the rows of `tile`
        channels are neighbours. Column x of phase p is column x * stride + p of the padded input,
        so that taps of one phase read neighbours.
    """
    inputs = w.in_channels // w.groups
    reach, stride = g.reach(count), g.stride[-1]
    length = -(-reach[-1] // stride)
    copy = emit.workspace((inputs // tile, *reach[:-1], tile, g.phases, length))
    # Read in the input's own order, a channel after the other.
    with emit.nest((inputs // tile, tile)) as (co, ci), emit.nest(reach[:-1]) as at:
        start = (first * g.stride[0], *(0,) * (len(at) - 1))
        where = [x + s - b for x, s, b in zip(at, start, g.before, strict=False)]
        channel = group * inputs + co * tile + ci
        copy_row(
            g.spatial[-1], g.before[-1], length,
            row_bounds(where, g.spatial, g.before, g.staged),
            lambda x, _: data[(n, channel, *where, x)],
            lambda p, x, _, value: T.buffer_store(copy, value, [co, *at, ci, p, x]),
            stride=stride, phases=g.phases,
        )  # fmt: skip
    return copy
