"""Direct convolution on channel-blocked data, with the output tile held in registers.

Spatial pack (Zheng and Chen, "Optimizing CNN Model Inference on CPUs", 2018): each vector holds
`lanes` output channels of one position; a tile of positions x channel blocks accumulates over all
input channels and taps, then the epilogue runs on the registers and every result is written once.

Works for 1, 2 and 3 spatial dimensions, any kernel, stride, padding, dilation, batch, and groups
whose output channels fill whole vectors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import conv_stage, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_geometry import ConvGeometry, channel_step
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.tiles import Tile, best_tile, efficiency, legal_tiles
from tvm_ext.target import CpuTarget

# Share of the L2 cache that a chunk of input may take; the rest is for weights and output.
_L2_SHARE = 0.5
# Beyond this many chunks nothing gets better.
_MOST_TASKS = 64
_TASK_SECONDS = 2e-7


@register
class SpatialPack(Algorithm[ConvWorkload]):
    """Blocked (or plain) input, blocked output, weights packed in panels of output channels.

    Parameters of the plan: `tile` positions and `blocks` channel vectors in registers; `chunk`
    rows (or positions, when the kernel is 1x1) whose input stays in cache while all weights pass;
    `pieces` parts of the output channels that threads share; `stage` copies the chunk's input.
    """

    name: ClassVar[str] = "spatial_pack"
    workload_type: ClassVar[type] = ConvWorkload

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if w.groups > 1 and (w.out_channels // w.groups) % target.lanes:
            per_group = w.out_channels // w.groups
            return refuse(f"{per_group} output channels a group don't fill {target.lanes} lanes")
        return YES

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes), (0, target.lanes))

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        g = ConvGeometry.of(workload)
        tiles = legal_tiles(g.out[-1], _group_blocks(workload, target), target)
        extent = _chunk_extent(g)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunk": tuple(range(1, extent + 1)),
            "pieces": tuple(range(1, _group_blocks(workload, target) + 1)),
            "stage": (True,) if g.must_stage else (False, True),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, g = workload, ConvGeometry.of(workload)
        blocks, extent = _group_blocks(w, target), _chunk_extent(g)
        tile = best_tile(g.out[-1], blocks, target)
        panels = -(-blocks // tile.columns)
        by_position = g.flat and not g.must_stage
        unit = tile.rows if by_position else 1
        options = []
        for tasks in range(1, min(extent, _MOST_TASKS) + 1):
            share = -(-extent // tasks)
            chunk = min(extent, -(-share // unit) * unit)
            if -(-extent // chunk) != tasks:
                continue
            for pieces in sorted({1, min(target.cores, panels)}):
                params = {
                    "tile": tile.rows, "blocks": tile.columns, "chunk": chunk, "pieces": pieces,
                    "stage": g.must_stage,
                }  # fmt: skip
                options.append((self.cost(w, params, target), tasks * pieces, params))
        return min(options, key=lambda option: option[:2])[-1]

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g = workload, ConvGeometry.of(workload)
        blocks = _group_blocks(w, target)
        padded = blocks * target.lanes * w.groups / w.out_channels
        share = efficiency(Tile(params["tile"], params["blocks"]), g.out[-1], blocks, target)
        multiply = 2 * w.macs * padded / (share * target.fma_peak)

        extent = _chunk_extent(g)
        tasks = -(-extent // params["chunk"]) * w.batch
        jobs = tasks * w.groups * params["pieces"]
        halo = 0 if g.flat else g.kernel[0] - g.stride[0]
        step = 1 if g.flat else g.stride[0]
        rows = (params["chunk"] * step + max(0, halo)) * prod(g.staged[1:])
        positions = params["chunk"] if g.flat and not g.must_stage else rows
        input_bytes = 4 * positions * w.in_channels / w.groups
        staging = 0.0
        if params["stage"]:
            staging = 2 * input_bytes * params["pieces"] / target.shared_bandwidth
        # A chunk that overflows the L2 cache comes from the shared one for each panel of weights.
        panels = -(-blocks // params["blocks"])
        spilled = max(0.0, input_bytes - _L2_SHARE * target.l2) * panels / target.shared_bandwidth
        # Weights that overflow it come from there for each chunk.
        weights = w.weight_bytes * padded
        level = target.shared_bandwidth if weights < target.l3 else target.memory_bandwidth
        reread = max(0.0, weights - 0.5 * target.l2) * (tasks - 1) / level
        work = multiply + (staging + spilled) * tasks * w.groups + reread
        work += tasks * w.groups * _TASK_SECONDS
        compute = work * -(-jobs // target.cores) / jobs
        stream = 0.7 * w.bytes / target.memory_bandwidth
        return max(compute, stream) + 0.3 * min(compute, stream)

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, v, width = workload, target.lanes, params["blocks"]
        kernel = ConvGeometry.of(w).kernel
        blocks, per_group = _group_blocks(w, target), w.in_channels // w.groups
        step = _step(w, target)
        data = weights[0].reshape(w.groups, w.out_channels // w.groups, per_group, *kernel)
        missing = blocks * v - data.shape[1]
        if missing:
            data = np.pad(data, [(0, 0), (0, missing)] + [(0, 0)] * (data.ndim - 2))
        data = data.reshape(w.groups, blocks, v, per_group // step, step, *kernel)
        panels = emit.cut_panels(data, 1, width, at=1)
        # (group, panel, block, lane, outer, step, *taps) to (.., outer, *taps, step, block, lane)
        taps = range(6, panels.ndim)
        panels = panels.transpose(0, 1, 4, *taps, 5, 2, 3)
        return [np.ascontiguousarray(panels.reshape(-1, *panels.shape[2:]))]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target, layout))


def _group_blocks(w: ConvWorkload, target: CpuTarget) -> int:
    """Vectors of output channels in one group."""
    return -(-(w.out_channels // w.groups) // target.lanes)


def _step(w: ConvWorkload, target: CpuTarget) -> int:
    return channel_step(w.in_channels // w.groups, target.lanes)


def _chunk_extent(g: ConvGeometry) -> int:
    """What `chunk` counts: positions of a flat convolution, else rows of the first dimension."""
    if g.flat:
        return g.staged[0] if g.must_stage else g.out[-1]
    return g.out[0]


def _emit(w: ConvWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]) -> None:
    """Declare the arguments and emit the loops over tasks, panels and tiles."""
    g, v = ConvGeometry.of(w), target.lanes
    block_in, block_out = layout
    width, step, blocks = params["blocks"], _step(w, target), _group_blocks(w, target)
    panels = -(-blocks // width)
    per_group = w.in_channels // w.groups
    all_blocks = blocks * w.groups

    data = emit.argument("data", stored_shape(w.in_shape, block_in))
    weight = emit.argument(
        "weight", (w.groups * panels, per_group // step, *g.kernel, step, width, v)
    )
    operands = emit.declare_operands(w.epilogue, block_out)
    out = emit.argument("out", stored_shape(w.out_shape, block_out))

    out = emit.view(out, (w.batch, all_blocks, *g.out, v))
    panel_floats = per_group * prod(g.kernel) * width * v
    flat_weight = emit.view(weight, (w.groups * panels * panel_floats,))
    data = conv_stage.lifted_input(w, g, data, block_in)
    epilogue = w.epilogue
    if len(g.out) != len(w.out_spatial) or g.flat:
        flat_shapes = [conv_stage.lifted_operand(w, g, o.shape) for o in epilogue.operands]
        epilogue = replace(
            epilogue,
            operands=tuple(
                replace(o, shape=s) for o, s in zip(epilogue.operands, flat_shapes, strict=True)
            ),
        )
        operands = [
            emit.view(x, emit.operand_shape(o.shape, block_out), o.dtype)
            for x, o in zip(operands, epilogue.operands, strict=True)
        ]

    extent, chunk = _chunk_extent(g), params["chunk"]
    pieces = params["pieces"]
    piece_panels = -(-panels // pieces)
    pieces = -(-panels // piece_panels)
    full, rest = divmod(extent, chunk)

    def task(n: Any, group: Any, piece: Any, first: Any, count: int) -> None:
        source = conv_stage.Source(data, staged=False)
        if params["stage"]:
            source = conv_stage.stage(w, g, data, block_in, n, group, first, count)
        if g.flat:
            positions = count * prod(g.staged[1:]) if g.must_stage else count
            start = first * prod(g.staged[1:]) if g.must_stage else first
            outer: tuple[int, ...] = (1,)
        else:
            positions, start = g.out[-1], 0
            outer = (count, *g.out[1:-1])
        row_tiles = sum(tiles for tiles, _ in emit.split_extent(positions, params["tile"]))
        turns = row_tiles * prod(outer) * (per_group // step)
        with emit.loop(piece_panels) as p:
            panel = piece * piece_panels + p
            guard = panels % piece_panels != 0

            def panel_body() -> None:
                with emit.nest(outer) as rows:
                    offset, done = 0, 0
                    for tiles, rows_tile in emit.split_extent(positions, params["tile"]):
                        with emit.loop(tiles) as t:
                            turn = emit.flat_index(rows, outer) * row_tiles + done + t
                            _tile(n, group, panel, rows, offset + t * rows_tile, rows_tile, turn)
                        offset += tiles * rows_tile
                        done += tiles

            def _tile(
                n: Any, group: Any, panel: Any, rows: Any, column: Any, size: int, turn: Any
            ) -> None:
                acc = emit.RegisterTile(size, width, v)
                acc.zero()
                with contextlib.ExitStack() as loops:
                    co = loops.enter_context(emit.loop(per_group // step))
                    # The tiles of a panel take turns in asking for the next panel's weights.
                    following = (group * panels + panel + 1) * panel_floats
                    now = turn * (per_group // step) + co
                    emit.prefetch_ahead(flat_weight, following, panel_floats, now, turns)
                    taps = loops.enter_context(emit.nest(g.kernel))
                    ci = loops.enter_context(emit.loop(step, "unroll"))
                    acc.multiply_add(
                        lambda row: source.load(
                            g, n, group, per_group, co * step, ci, rows, column + row, taps,
                            block_in, first,
                        ),
                        lambda c, lane: weight[(group * panels + panel, co, *taps, ci, c, lane)],
                    )  # fmt: skip
                block0 = group * blocks + emit.panel_start(panel, width, blocks)
                at_rows = (0,) if g.flat else (first + rows[0], *rows[1:])

                def store(row: Any, c: Any, lane: Any) -> None:
                    index = [n, block0 + c, *at_rows, start + column + row, lane]
                    value = emit.apply_epilogue(
                        epilogue, operands, block_out, index, [acc.get(row, c, lane)]
                    )
                    T.buffer_store(out, value, index)

                acc.each(store)

            if guard:
                with T.If(panel < panels), T.Then():
                    panel_body()
            else:
                panel_body()

    tasks = full + (1 if rest else 0)
    with emit.parallel_tasks(w.batch, tasks, w.groups, pieces) as (n, c, group, piece):
        if not rest:
            task(n, group, piece, c * chunk, chunk)
        elif not full:
            task(n, group, piece, 0, rest)
        else:
            with T.If(c < full):
                with T.Then():
                    task(n, group, piece, c * chunk, chunk)
                with T.Else():
                    task(n, group, piece, full * chunk, rest)
