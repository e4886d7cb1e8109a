"""The loops of spatial pack convolution.

A task takes a chunk of rows and a piece of the output channels: each panel of weights passes over
the chunk's input, which stays in cache. With a pool stage the rows are the pool's.
"""

from __future__ import annotations

import contextlib
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import conv_stage, cuts, emit
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.conv_geometry import ConvGeometry, channel_step
from tvm_ext.schedules.conv_prologue import declare_constants
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import (
    apply_epilogue,
    declare_operands,
    lifted_epilogue,
    whole_operands,
)
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.pool_stage import RollingPool
from tvm_ext.target import CpuTarget

# Steps of the reduction beyond which the lines of a tile's results cost nothing to wait for.
_SHORT_REDUCTION = 512


def group_blocks(w: ConvWorkload, target: CpuTarget) -> int:
    """Vectors of output channels in one group."""
    return -(-(w.out_channels // w.groups) // target.lanes)


def reduction_step(w: ConvWorkload, target: CpuTarget) -> int:
    """Input channels that the inner loop unrolls."""
    return channel_step(w.in_channels // w.groups, target.lanes)


def chunk_extent(w: ConvWorkload, g: ConvGeometry) -> int:
    """What `chunk` counts: positions of a flat convolution, else rows (of one slice)."""
    if w.pool:
        return w.pool.out_spatial[0]
    if g.flat:
        return g.staged[0] if g.must_stage else g.out[-1]
    return g.out[-2]


def emit_spatial_pack(
    w: ConvWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
) -> None:
    """Declare the arguments and emit the loops over tasks, panels and tiles."""
    g, v = ConvGeometry.of(w), target.lanes
    block_in, block_out = layout
    width, step, blocks = params["blocks"], reduction_step(w, target), group_blocks(w, target)
    panels = -(-blocks // width)
    per_group = w.in_channels // w.groups
    all_blocks = blocks * w.groups

    data = emit.argument("data", stored_shape(w.in_shape, block_in))
    weight = emit.argument(
        "weight", (w.groups * panels, per_group // step, *g.kernel, step, width, v)
    )
    constants = declare_constants(w, target)
    operands = declare_operands(w.epilogue, block_out)
    out = emit.argument("out", stored_shape(w.out_shape, block_out))

    if not w.pool:
        out = emit.view(out, (w.batch, all_blocks, *g.out, v))
    panel_floats = per_group * prod(g.kernel) * width * v
    flat_weight = emit.view(weight, (w.groups * panels * panel_floats,))
    data = conv_stage.lifted_input(w, g, data, block_in)
    epilogue, operands = lifted_epilogue(w.epilogue, operands, g.out, block_out)

    wanted = []
    if not w.pool and per_group * prod(g.kernel) <= _SHORT_REDUCTION:
        wanted = [out, *whole_operands(epilogue, operands, (w.batch, w.out_channels, *g.out))]

    extent, chunk = chunk_extent(w, g), params["chunk"]
    pieces = params["pieces"]
    piece_panels = -(-panels // pieces)
    pieces = -(-panels // piece_panels)
    full, rest = divmod(extent, chunk)

    def task(n: Any, slices: Any, group: Any, piece: Any, first: Any, count: int) -> None:
        pooled = RollingPool(w, v, block_out, width, first, count) if w.pool else None
        origin = (*slices, pooled.start if pooled else first)
        source = conv_stage.Source(data, staged=False)
        if params["stage"]:
            source = conv_stage.stage(
                w, g, data, block_in, n, group, origin, pooled.rows if pooled else count, constants
            )
        if g.flat:
            positions = count * prod(g.staged[1:]) if g.must_stage else count
            start = first * prod(g.staged[1:]) if g.must_stage else first
            rows = 1
        else:
            positions, start, rows = g.out[-1], 0, pooled.turns if pooled else count
        row_tiles = sum(tiles for tiles, _ in cuts.split_extent(positions, params["tile"]))
        turns = row_tiles * rows * (per_group // step)
        with emit.loop(piece_panels) as p:
            panel = piece * piece_panels + p
            guard = panels % piece_panels != 0

            block0 = group * blocks + cuts.panel_start(panel, width, blocks)

            def panel_body() -> None:
                with emit.loop(rows) as turn:
                    if pooled is None:
                        row_body(turn, turn)
                        return
                    with pooled.row(turn) as row:
                        row_body(row - pooled.start, turn)
                    pooled.finish(
                        turn,
                        lambda c, y, x, lane, value: T.buffer_store(
                            out, value, [n, block0 + c, y, x, lane]
                        ),
                    )

            def row_body(row: Any, turn: Any) -> None:
                offset, done = 0, 0
                for tiles, rows_tile in cuts.split_extent(positions, params["tile"]):
                    with emit.loop(tiles) as t:
                        if pooled:
                            pooled.prefetch(out, (n, block0), turn, done + t, row_tiles)
                        now = turn * row_tiles + done + t
                        _tile(n, group, panel, row, offset + t * rows_tile, rows_tile, now)
                    offset += tiles * rows_tile
                    done += tiles

            def _tile(
                n: Any, group: Any, panel: Any, row: Any, column: Any, size: int, turn: Any
            ) -> None:
                acc = emit.RegisterTile(size, width, v)
                acc.zero()
                at_row = (0,) if g.flat else (*origin[:-1], origin[-1] + row)

                def ask_for_results(turn: Any) -> None:
                    """Ask for a share of the lines that the tile writes, and of those it adds."""
                    share = -(-size // (per_group // step))
                    for i in range(share):
                        x = start + column + tirx.min(turn * share + i, size - 1)
                        for buffer in wanted:
                            for c in range(width):
                                emit.prefetch(buffer, [n, block0 + c, *at_row, x, 0], 1)

                with contextlib.ExitStack() as loops:
                    co = loops.enter_context(emit.loop(per_group // step))
                    # The tiles of a panel take turns in asking for the next panel's weights.
                    following = (group * panels + panel + 1) * panel_floats
                    now = turn * (per_group // step) + co
                    emit.prefetch_ahead(flat_weight, following, panel_floats, now, turns)
                    ask_for_results(co)
                    taps = loops.enter_context(emit.nest(g.kernel))
                    ci = loops.enter_context(emit.loop(step, "unroll"))
                    acc.multiply_add(
                        lambda x: source.load(
                            g, n, group, per_group, co * step, ci, row, column + x, taps,
                            block_in, origin,
                        ),
                        lambda c, lane: weight[(group * panels + panel, co, *taps, ci, c, lane)],
                    )  # fmt: skip

                def store(x: Any, c: Any, lane: Any) -> None:
                    index = [n, block0 + c, *at_row, start + column + x, lane]
                    value = apply_epilogue(
                        epilogue, operands, block_out, index, [acc.get(x, c, lane)]
                    )
                    if pooled:
                        pooled.put(c, at_row[-1], (column + x) * v + lane, value)
                    else:
                        T.buffer_store(out, value, index)

                acc.each(store)

            if guard:
                with T.If(panel < panels), T.Then():
                    panel_body()
            else:
                panel_body()

    tasks = full + (1 if rest else 0)
    cut = () if g.flat else g.out[:-2]
    with emit.parallel_tasks(w.batch, *cut, tasks, w.groups, pieces) as (
        n,
        *slices,
        c,
        group,
        piece,
    ):
        if not rest:
            task(n, slices, group, piece, c * chunk, chunk)
        elif not full:
            task(n, slices, group, piece, 0, rest)
        else:
            with T.If(c < full):
                with T.Then():
                    task(n, slices, group, piece, c * chunk, chunk)
                with T.Else():
                    task(n, slices, group, piece, full * chunk, rest)
