"""Winograd convolution F(2x2, 3x3) and F(4x4, 3x3) on channel-blocked data.

2.25 and 4 times fewer multiplications than direct convolution, for transforms of the input and of
the output and for weights that grow by 16/9 and 4. A task takes some rows of tiles: it transforms
their input into a buffer that stays in cache, and for each panel of output channels multiplies
(one small matrix product for each of the a x a frequencies) and transforms back at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_geometry import channel_step
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.tiles import Tile, best_tile, efficiency, legal_tiles
from tvm_ext.schedules.winograd_matrices import TRANSFORMS, emit_linear_map, transform_weights
from tvm_ext.schedules.workload import ConvWorkload
from tvm_ext.target import CpuTarget

# Share of the L2 cache that the transformed input of a task may take.
_L2_SHARE = 0.75
_ZERO = tirx.const(0.0, "float32")
# Vector instructions that one tile's transforms cost for each vector of channels, both ways.
_TRANSFORM_CYCLES = {2: (28.0, 24.0), 4: (115.0, 105.0)}


class _Winograd(Algorithm[ConvWorkload]):
    """F(m, 3); parameters: `tile` x `blocks` registers, `rows` of tiles a task, `pieces` of K."""

    m: ClassVar[int]
    workload_type: ClassVar[type] = ConvWorkload

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        for what, value, allowed in (
            ("kernel", w.kernel, (3, 3)),
            ("strides", w.strides, (1, 1)),
            ("dilation", w.dilation, (1, 1)),
            ("groups", w.groups, 1),
        ):
            if value != allowed:
                return refuse(f"{what} {value}; only {allowed}")
        return YES

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes),)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        rows, columns = self._tiles(workload)
        blocks = -(-workload.out_channels // target.lanes)
        tiles = legal_tiles(rows * columns, blocks, target)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "rows": tuple(range(1, rows + 1)),
            "pieces": tuple(range(1, blocks + 1)),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        rows, columns = self._tiles(w)
        blocks = -(-w.out_channels // target.lanes)
        options = []
        for tasks in range(1, rows + 1):
            count = -(-rows // tasks)
            if tasks > 1 and count == -(-rows // (tasks - 1)):
                continue
            tile = best_tile(count * columns, blocks, target)
            panels = -(-blocks // tile.columns)
            for pieces in {1, min(target.cores, panels)}:
                params = {
                    "tile": tile.rows, "blocks": tile.columns, "rows": count, "pieces": pieces,
                }  # fmt: skip
                options.append((self.cost(w, params, target), pieces, count, params))
        return min(options, key=lambda option: option[:3])[-1]

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, v, a = workload, target.lanes, self.m + 2
        rows, columns = self._tiles(w)
        blocks, in_blocks = -(-w.out_channels // v), -(-w.in_channels // v)
        tile = Tile(params["tile"], params["blocks"])
        task_tiles = params["rows"] * columns
        tasks = -(-rows // params["rows"]) * w.batch
        jobs = tasks * params["pieces"]
        into, back = _TRANSFORM_CYCLES[self.m]
        cycle = 4 * v / target.fma_peak  # two FMA instructions of 2 x lanes operations

        share = efficiency(tile, task_tiles, blocks, target)
        multiply = 2 * a * a * task_tiles * w.in_channels * blocks * v / share / target.fma_peak
        transforms = task_tiles * cycle * (params["pieces"] * into * in_blocks + back * blocks)
        weights = 4 * a * a * w.in_channels * blocks * v
        shared_cache = target.shared_bandwidth
        # Every task after the first finds the weights in the shared cache, if they fit there.
        again = weights / (shared_cache if weights < target.l3 else target.memory_bandwidth)
        reread = max(0.0, weights - 0.5 * target.l2) / weights * again
        frequencies = 4 * a * a * task_tiles * w.in_channels
        panels = -(-blocks // tile.columns)
        spilled = max(0.0, frequencies - _L2_SHARE * target.l2) * panels / shared_cache
        # The last task may be smaller than the others; what counts is the sum of all rows.
        tile_work = (multiply + transforms + spilled) * w.batch * rows / params["rows"]
        balance = -(-jobs // target.cores) / jobs
        compute = (tile_work + reread * tasks) * balance

        traffic = (weights + 4 * prod(w.in_shape) + 4 * prod(w.out_shape)) * 0.7
        stream = traffic / target.memory_bandwidth
        return max(compute, stream) + 0.3 * min(compute, stream)

    def tolerance(self, workload: ConvWorkload, params: Params) -> float:
        return TRANSFORMS[self.m].tolerance

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, v, width, a = workload, target.lanes, params["blocks"], self.m + 2
        blocks = -(-w.out_channels // v)
        data = transform_weights(weights[0], self.m).astype("float32")
        data = np.pad(data, [(0, 0), (0, 0), (0, blocks * v - w.out_channels), (0, 0)])
        data = data.reshape(a * a, blocks, v, w.in_channels)
        panels = emit.cut_panels(data, 1, width, at=0)
        # (panel, frequency, block, lane, channel) -> (panel, frequency, channel, block, lane)
        return [np.ascontiguousarray(panels.transpose(0, 1, 4, 2, 3))]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(self.m, workload, params, target))

    def _tiles(self, w: ConvWorkload) -> tuple[int, int]:
        rows, columns = (-(-n // self.m) for n in w.out_spatial)
        return rows, columns


@register
class Winograd2(_Winograd):
    """F(2x2, 3x3): small maps, where F(4x4) has too few tiles for its weights."""

    name: ClassVar[str] = "winograd_2x2"
    m: ClassVar[int] = 2


@register
class Winograd4(_Winograd):
    """F(4x4, 3x3)."""

    name: ClassVar[str] = "winograd_4x4"
    m: ClassVar[int] = 4


def _emit(m: int, w: ConvWorkload, params: Params, target: CpuTarget) -> None:
    v, a, width = target.lanes, m + 2, params["blocks"]
    rows, columns = (-(-n // m) for n in w.out_spatial)
    blocks, in_blocks = -(-w.out_channels // v), -(-w.in_channels // v)
    panels = -(-blocks // width)
    transform = TRANSFORMS[m]
    step = channel_step(w.in_channels, v)

    data = emit.argument("data", stored_shape(w.in_shape, v))
    weight = emit.argument("weight", (panels, a * a, w.in_channels, width, v))
    operands = emit.declare_operands(w.epilogue, v)
    out = emit.argument("out", stored_shape(w.out_shape, v))

    slab = w.in_channels * width * v
    flat_weight = emit.view(weight, (panels * a * a * slab,))
    pieces = min(params["pieces"], panels)
    piece_panels = -(-panels // pieces)
    pieces = -(-panels // piece_panels)
    full, rest = divmod(rows, params["rows"])

    def task(n: Any, first: Any, count: int, piece: Any) -> None:
        tiles = count * columns
        parts = emit.split_extent(tiles, params["tile"])
        all_tiles = sum(number for number, _ in parts)
        freq = emit.workspace((a * a, in_blocks, tiles, v))
        product = emit.workspace((a * a, tiles, width, v))
        # A tile between its two one-dimensional transforms: more vectors than there are registers.
        half = emit.workspace((a * a * v,))
        result = emit.workspace((m * m * v,))
        with emit.loop(in_blocks) as c:
            _transform_input(n, c, first, count, half, freq)
        with emit.loop(piece_panels) as p:
            # A piece past the end computes the last panel again.
            panel = piece * piece_panels + p
            panel = tirx.min(panel, panels - 1) if panels % piece_panels else panel
            with emit.loop(a * a) as e:
                offset, done = 0, 0
                for number, size in parts:
                    with emit.loop(number) as t:
                        turn = (done + t, all_tiles)
                        _multiply(freq, product, e, panel, offset + t * size, size, turn)
                    offset += number * size
                    done += number
            with emit.loop(count) as r, emit.loop(columns) as x, emit.loop(width) as k:
                block = emit.panel_start(panel, width, blocks) + k
                _transform_output(
                    (n, block, first + r, x), product, (r * columns + x, k), half, result
                )

    def _multiply(
        freq: Any, product: Any, e: Any, panel: Any, start: Any, size: int, turn: tuple[Any, int]
    ) -> None:
        acc = emit.RegisterTile(size, width, v)
        acc.zero()
        steps = w.in_channels // step
        with emit.loop(steps) as co:
            c = co * step
            # The tiles take turns in asking for the next frequency's weights.
            following = (panel * a * a + e + 1) * slab
            now, turns = turn[0] * steps + co, turn[1] * steps
            emit.prefetch_ahead(flat_weight, following, slab, now, turns)
            with emit.loop(step, "unroll") as ci:
                acc.multiply_add(
                    lambda row: freq[e, c // v, start + row, c % v + ci],
                    lambda column, lane: weight[panel, e, c + ci, column, lane],
                )
        acc.each(
            lambda row, column, lane: T.buffer_store(
                product, acc.get(row, column, lane), [e, start + row, column, lane]
            )
        )

    def _transform_input(n: Any, c: Any, first: Any, count: int, half: Any, freq: Any) -> None:
        """One block of channels: pad the task's rows into an L1-sized copy, then transform it."""
        plane = emit.workspace((count * m + 2, columns * m + 2, v))
        with emit.loop(count * m + 2) as i, emit.loop(columns * m + 2) as j:
            y, x = first * m + i - w.pad_before[0], j - w.pad_before[1]
            inside = tirx.all(y >= 0, y < w.spatial[0], x >= 0, x < w.spatial[1])
            with T.vectorized(0, v) as lane:
                value = tirx.if_then_else(inside, data[n, c, y, x, lane], _ZERO)
                T.buffer_store(plane, value, [i, j, lane])
        with emit.loop(count) as r, emit.loop(columns) as x:
            with T.unroll(0, a) as j:
                emit_linear_map(
                    transform.input,
                    v,
                    lambda i, lane: plane[r * m + i, x * m + j, lane],
                    lambda i, lane, value: T.buffer_store(half, value, [(i * a + j) * v + lane]),
                )
            with T.unroll(0, a) as i:
                emit_linear_map(
                    transform.input,
                    v,
                    lambda j, lane: half[(i * a + j) * v + lane],
                    lambda j, lane, value: T.buffer_store(
                        freq, value, [i * a + j, c, r * columns + x, lane]
                    ),
                )

    def _transform_output(
        where: tuple[Any, ...], product: Any, source: tuple[Any, Any], half: Any, result: Any
    ) -> None:
        n, block, row, column = where
        with T.unroll(0, a) as j:
            emit_linear_map(
                transform.output,
                v,
                lambda i, lane: product[(i * a + j, *source, lane)],
                lambda i, lane, value: T.buffer_store(half, value, [(i * a + j) * v + lane]),
            )
        with T.unroll(0, m) as i:
            emit_linear_map(
                transform.output,
                v,
                lambda j, lane: half[(i * a + j) * v + lane],
                lambda j, lane, value: T.buffer_store(result, value, [(i * m + j) * v + lane]),
            )
        with T.unroll(0, m) as i, T.unroll(0, m) as j:
            y, x = row * m + i, column * m + j
            ragged = [
                position < extent
                for position, extent in zip((y, x), w.out_spatial, strict=True)
                if extent % m
            ]
            with contextlib.ExitStack() as stack:
                if ragged:
                    stack.enter_context(T.If(tirx.all(*ragged)))
                    stack.enter_context(T.Then())
                lane = stack.enter_context(T.vectorized(0, v))
                index = [n, block, y, x, lane]
                value = emit.apply_epilogue(
                    w.epilogue, operands, v, index, [result[(i * m + j) * v + lane]]
                )
                T.buffer_store(out, value, index)

    with emit.parallel_tasks(w.batch, full + (1 if rest else 0), pieces) as (n, c, piece):
        if not rest:
            task(n, c * params["rows"], params["rows"], piece)
        elif not full:
            task(n, 0, rest, piece)
        else:
            with T.If(c < full):
                with T.Then():
                    task(n, c * params["rows"], params["rows"], piece)
                with T.Else():
                    task(n, full * params["rows"], rest, piece)
