"""The loops of spatial pack convolution, dense and sparse.

A task takes a chunk of rows and a piece of the output channels: each panel of weights passes over
the chunk's input, which stays in cache. With a pool stage the rows are the pool's.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import conv_stage, cuts, emit
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_prologue import declare_constants
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import (
    apply_epilogue,
    declare_operands,
    lifted_epilogue,
    whole_operands,
)
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.pool_stage import is_cut
from tvm_ext.schedules.producer_stage import ProducerStage
from tvm_ext.schedules.rolling_pool import RollingPool
from tvm_ext.schedules.spatial_pack_weights import Place, Weights, group_blocks
from tvm_ext.target import CpuTarget

# Steps of the reduction beyond which the lines of a tile's results cost nothing to wait for.
_SHORT_REDUCTION = 512


def chunk_extent(w: ConvWorkload, g: ConvGeometry) -> int:
    """What `chunk` counts: positions of a flat convolution, else rows (of one slice)."""
    if w.pool:
        return w.pool.out_spatial[-2]
    if g.flat:
        return g.staged[0] if g.must_stage else g.out[-1]
    return g.out[-2]


def emit_spatial_pack(
    w: ConvWorkload, params: Params, target: CpuTarget, layout: tuple[int, int], weights: Weights
) -> None:
    """Declare the arguments and emit the loops over tasks, panels and tiles.

    `weights` has the innermost ones, over what a tile is multiplied with.
    """
    g, v = ConvGeometry.of(w), target.lanes
    block_in, block_out = layout
    width, blocks = params["blocks"], group_blocks(w, target)
    per_group = w.in_channels // w.groups
    all_blocks = blocks * w.groups

    data = emit.argument("data", stored_shape(w.source_shape, block_in))
    weights.declare()
    constants = declare_constants(w, target)
    producer = ProducerStage(w, target) if w.producer else None
    operands = declare_operands(w.epilogue, block_out)
    out = emit.argument("out", stored_shape(w.out_shape, block_out))

    weights.view()
    if not w.pool:
        out = emit.view(out, (w.batch, all_blocks, *g.out, v))
    in_place = emit.view(data, (prod(data.shape),)) if weights.room else None
    if producer is None:
        data = conv_stage.lifted_input(w, g, data, block_in)
    epilogue, operands = lifted_epilogue(w.epilogue, operands, g.out, block_out)

    wanted = []
    if not w.pool and per_group * prod(g.kernel) <= _SHORT_REDUCTION:
        wanted = [out, *whole_operands(epilogue, operands, (w.batch, w.out_channels, *g.out))]

    extent, chunk = chunk_extent(w, g), params["chunk"]
    pieces = weights.pieces
    full, rest = divmod(extent, chunk)
    if w.pool and not rest and is_cut(w, chunk):
        # The last chunk has code of its own: with a start that depends on whether a chunk is the
        # last, LLVM doesn't see that rows follow each other, and computes an address a load.
        full, rest = full - 1, chunk

    def task(n: Any, slices: Any, group: Any, piece: Any, first: Any, count: int) -> None:
        pooled, origin = None, (*slices, first)
        if w.pool:
            last = first if isinstance(first, int) else (full - 1) * chunk
            pooled = RollingPool(w, v, block_out, width, first, count, slices, last)
            origin = (*pooled.slices, pooled.start)
        source = conv_stage.Source(data if in_place is None else in_place, staged=False)
        if producer is not None:
            rows = pooled.rows if pooled else count
            source = producer.stage(data, n, pooled.start if pooled else first, rows)
        elif params["stage"]:
            source = conv_stage.stage(
                w, g, data, block_in, n, group, origin, pooled.rows if pooled else count, constants,
                weights.room, pooled.depth if pooled else 1,
            )  # fmt: skip
        if g.flat:
            positions = count * prod(g.staged[1:]) if g.must_stage else count
            start = first * prod(g.staged[1:]) if g.must_stage else first
            rows = 1
        else:
            positions, start, rows = g.out[-1], 0, pooled.turns if pooled else count
        row_tiles = sum(tiles for tiles, _ in cuts.split_extent(positions, params["tile"]))
        turns = row_tiles * rows
        with weights.panels(group, piece) as panel:
            block0 = group * blocks + cuts.panel_start(panel, width, blocks)

            def row_body(row: Any, turn: Any, part: Any = 0) -> None:
                offset, done = 0, 0
                for tiles, rows_tile in cuts.split_extent(positions, params["tile"]):
                    with emit.loop(tiles) as t:
                        if pooled:
                            pooled.prefetch(out, (n, block0), turn, done + t, row_tiles)
                        now = turn * row_tiles + done + t
                        _tile(n, group, panel, row, offset + t * rows_tile, rows_tile, now, part)
                    offset += tiles * rows_tile
                    done += tiles

            def _tile(
                n: Any, group: Any, panel: Any, row: Any, column: Any, size: int, turn: Any,
                part: Any,
            ) -> None:  # fmt: skip
                acc = emit.RegisterTile(size, width, v)
                acc.zero()
                at_row: list[Any] = [0] if g.flat else [*origin[:-1], origin[-1] + row]
                at_row[0] = at_row[0] + part

                def ask_for_results(part: Any, parts: int) -> None:
                    """Ask for a part of the lines that the tile writes, and of those it adds."""
                    share = -(-size // parts)
                    for i in range(share):
                        x = start + column + tirx.min(part * share + i, size - 1)
                        for buffer in wanted:
                            for c in range(width):
                                emit.prefetch(buffer, [n, block0 + c, *at_row, x, 0], 1)

                here = replace(source, part=part)
                at = Place(here, n, group, panel, row, column, origin, turn, turns)
                weights.multiply(acc, at, block_in, ask_for_results)

                def store(x: Any, c: Any, lane: Any) -> None:
                    index = [n, block0 + c, *at_row, start + column + x, lane]
                    value = apply_epilogue(
                        epilogue, operands, block_out, index, [acc.get(x, c, lane)]
                    )
                    if pooled:
                        pooled.put(c, at_row[-1], (column + x) * v + lane, value, part)
                    else:
                        T.buffer_store(out, value, index)

                acc.each(store)

            with emit.loop(rows) as turn:
                if pooled is None:
                    row_body(turn, turn)
                else:
                    with pooled.row(turn) as row, emit.loop(pooled.depth) as part:
                        row_body(row - pooled.start, turn, part)
                    pooled.finish(
                        turn,
                        lambda c, y, x, lane, value: T.buffer_store(
                            out, value, [n, block0 + c, *slices, y, x, lane]
                        ),
                    )

    tasks = full + (1 if rest else 0)
    cut = () if g.flat else w.pool.out_spatial[:-2] if w.pool else g.out[:-2]
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
