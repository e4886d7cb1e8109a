"""The loops of a convolution that skips zeros: from a planar copy, column by column.

A task copies the rows that it needs (`sparse_stage`), of some input channels at a time. Then each
panel of output channels passes over them: a tile of its channels x vectors of positions accumulates
in registers while a loop takes the panel's columns one after the other. Of a column it reads where
its input starts, one weight a channel, and the vectors there. If the channels come in several
parts, the sums wait in memory for the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands, lifted_epilogue
from tvm_ext.schedules.pointer_run import pointer_run
from tvm_ext.schedules.sparse_geometry import SparseGeometry
from tvm_ext.schedules.sparse_stage import blank_gaps, stage_planes
from tvm_ext.target import CpuTarget


def geometry(w: ConvWorkload, params: Params, target: CpuTarget) -> SparseGeometry:
    """The geometry of the plan's tasks."""
    slack = params["vectors"] * target.lanes
    return SparseGeometry.of(w, params["chunk"], slack, params["depth"], params["shifted"])


def emit_sparse_conv(w: ConvWorkload, params: Params, target: CpuTarget) -> None:
    """Declare the arguments and emit the loops over tasks, panels, tiles and columns."""
    g, v = geometry(w, params, target), target.lanes
    size, pieces, chunk = params["channels"], params["pieces"], params["chunk"]
    panels, parts = -(-w.out_channels // size), w.in_channels // params["depth"]
    kept = tirx.Var("kept", "int32")

    data = emit.argument("data", w.in_shape)
    values = emit.argument("values", (kept, size))
    columns = emit.argument("columns", (kept,), "int32")
    pointers = emit.argument("pointers", (parts * panels + 1,), "int32")
    shares = emit.argument("shares", (pieces + 1,), "int32")
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    data = emit.view(data, (w.batch, w.in_channels, *g.spatial))
    out = emit.view(out, (w.batch, w.out_channels, *g.out))
    epilogue, operands = lifted_epilogue(w.epilogue, operands, g.out, 0)

    def store(index: Sequence[Any], value: tirx.Expr) -> None:
        T.buffer_store(out, apply_epilogue(epilogue, operands, 0, index, [value]), index)

    def task(n: Any, slices: Any, first: Any, piece: Any) -> None:
        copy = emit.workspace((g.size,))
        blank_gaps(g, copy, v)
        direct = g.flat and g.chunk % v == 0 and w.out_channels % size == 0
        positions = g.positions + g.slack
        # Of all panels: how many a piece has is known when it runs.
        partial = emit.workspace((panels, size, positions)) if parts > 1 else None
        line = None if direct else emit.workspace((size, positions))

        def tile_at(part: Any, panel: Any, start: Any, vectors: int, last: bool) -> None:
            def waiting(r: Any, c: Any, lane: Any) -> list[Any]:
                return [panel, r, start + c * v + lane]

            acc = emit.RegisterTile(size, vectors, v)
            if isinstance(part, int) and part == 0:
                acc.zero()
            else:
                acc.fill(lambda r, c, lane: partial[tuple(waiting(r, c, lane))])
            with pointer_run(pointers, part * panels + panel) as j:
                acc.multiply_add(
                    lambda r: values[j, r],
                    lambda c, lane: copy[columns[j] + start + c * v + lane],
                    by_columns=size < vectors,
                )

            def keep(r: Any, c: Any, lane: Any) -> None:
                value = acc.get(r, c, lane)
                if not last:
                    T.buffer_store(partial, value, waiting(r, c, lane))
                elif line is None:
                    store([n, panel * size + r, 0, first + start + c * v + lane], value)
                else:
                    T.buffer_store(line, value, [r, start + c * v + lane])

            acc.each(keep)

        def rows_of(panel: Any) -> None:
            """What the positions of `line` are in the output."""
            rows, width = (1, chunk) if g.flat else (chunk, g.out[-1])
            with emit.loop(size) as r:
                channel = panel * size + r
                guard = w.out_channels % size != 0

                def body() -> None:
                    with emit.loop(rows) as y:

                        def run(at: Any, lanes: int) -> None:
                            with emit.loop(lanes, "vectorized") as lane:
                                x = at + lane
                                where = [0, first + x] if g.flat else [*slices, first + y, x]
                                store([n, channel, *where], line[r, y * g.pitch + x])

                        emit.cover(width, v, run)

                if guard:
                    with T.If(channel < w.out_channels), T.Then():
                        body()
                else:
                    body()

        def pass_over(part: Any, last: bool) -> None:
            """All panels of the piece, for one part of the channels."""
            stage_planes(g, copy, data, n, part * params["depth"], slices, first, v)
            with pointer_run(shares, piece) if pieces > 1 else emit.loop(panels) as panel:
                start = 0
                for count, vectors in cuts.split_extent(-(-g.positions // v), params["vectors"]):
                    with emit.loop(count) as t:
                        tile_at(part, panel, start + t * (vectors * v), vectors, last)
                    start += count * vectors * v
                if last and line is not None:
                    rows_of(panel)

        pass_over(0, last=parts == 1)
        if parts > 2:
            with emit.loop(parts - 2) as part:
                pass_over(part + 1, last=False)
        if parts > 1:
            pass_over(parts - 1, last=True)

    slices = () if g.flat else g.out[:-2]
    tasks = -(-g.extent // chunk)
    with emit.parallel_tasks(w.batch, *slices, tasks, pieces) as (n, *at, c, piece):
        task(n, at, cuts.panel_start(c, chunk, g.extent), piece)


def tasks(w: ConvWorkload, g: SparseGeometry) -> int:
    """How many tasks there are for each piece of the panels."""
    return w.batch * (1 if g.flat else prod(g.out[:-2])) * -(-g.extent // g.chunk)
