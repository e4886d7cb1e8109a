"""The loops of Winograd convolution.

A task takes some rows of tiles: it transforms their input into a buffer that stays in cache, and
for each panel of output channels multiplies (one small matrix product for each of the a x a
frequencies) and transforms back at once.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.conv_geometry import channel_step
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import declare_operands
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.pool_stage import when
from tvm_ext.schedules.winograd_input import CopiedInput, TileInput
from tvm_ext.schedules.winograd_matrices import TRANSFORMS, emit_linear_map
from tvm_ext.schedules.winograd_output import RowCut, TileOutput
from tvm_ext.schedules.winograd_widened import OVERLAP, WidenedInput
from tvm_ext.target import CpuTarget


def emit_winograd(m: int, w: ConvWorkload, params: Params, target: CpuTarget) -> None:
    """Declare the arguments and emit the loops of F(m, 3)."""
    v, a, width = target.lanes, m + 2, params["blocks"]
    rows, columns = (-(-n // m) for n in w.conv_spatial)
    cut = RowCut(m, w, params["rows"])
    blocks, in_blocks = -(-w.out_channels // v), -(-w.in_channels // v)
    panels = -(-blocks // width)
    transform = TRANSFORMS[m]
    step = channel_step(w.in_channels, v)

    # The tiles of a pool stage need not start at a multiple of their size.
    reach = rows * m + 2 + (m if w.pool else 0)
    data = emit.argument("data", stored_shape(w.source_shape, v))
    weight = emit.argument("weight", (panels, a * a, w.in_channels, width, v))
    widened = "strips" in params
    given: TileInput = (
        WidenedInput(w, params, columns * m + OVERLAP, target)
        if widened
        else CopiedInput(w, columns * m + OVERLAP, reach, target)
    )
    operands = declare_operands(w.epilogue, v)
    out = emit.argument("out", stored_shape(w.out_shape, v))

    given.view(data)
    slab = w.in_channels * width * v
    flat_weight = emit.view(weight, (panels * a * a * slab,))
    pieces = min(params["pieces"], panels)
    piece_panels = -(-panels // pieces)
    pieces = -(-panels // piece_panels)
    share = cut.share
    full, rest = divmod(cut.height, share)

    def task(n: Any, first: Any, share: int, piece: Any, strip: Any = 0) -> None:
        count, start = cut.tiles_of(share), cut.start(first, share)
        tiles = count * columns
        parts = cuts.split_extent(tiles, params["tile"])
        all_tiles = sum(number for number, _ in parts)
        freq = emit.spread_rows(a * a, in_blocks * tiles * v)
        product = emit.spread_rows(a * a, tiles * width * v)
        # A tile between its two one-dimensional transforms: more vectors than there are registers.
        half = emit.workspace((a * a * v,))
        output = TileOutput(cut, operands, out, v, width, n, first, start, share, widened)
        given.each(
            strip, start, count * m + OVERLAP,
            lambda c, plane: _transform_input(c, count, plane, half, freq),
        )  # fmt: skip
        with emit.loop(piece_panels) as p:
            # A piece past the end computes the last panel again.
            panel = piece * piece_panels + p
            panel = tirx.min(panel, panels - 1) if panels % piece_panels else panel
            with emit.loop(a * a) as e:
                offset, done = 0, 0
                for number, size in parts:
                    with emit.loop(number) as t:
                        turn = (done + t, all_tiles)
                        _multiply(freq, product, (e, panel), offset + t * size, size, tiles, turn)
                    offset += number * size
                    done += number
            block0 = cuts.panel_start(panel, width, blocks)
            with emit.nest((count, columns, width)) as (r, x, k):
                source = ((r * columns + x) * width + k) * v
                output.tile(product, source, k, block0 + k, r, x)
            output.pool(block0)

    def _multiply(
        freq: Any, product: Any, at: tuple[Any, Any], start: Any, size: int, tiles: int,
        turn: tuple[Any, int],
    ) -> None:  # fmt: skip
        e, panel = at
        acc = emit.RegisterTile(size, width, v)
        acc.zero()
        steps = w.in_channels // step
        following = (panel * a * a + e + 1) * slab
        with emit.loop(steps) as co:
            c = co * step
            # The tiles take turns in asking for the next frequency's weights.
            now, turns = turn[0] * steps + co, turn[1] * steps
            emit.prefetch_ahead(flat_weight, following, slab, now, turns)
            with emit.loop(step, "unroll") as ci:
                acc.multiply_add(
                    lambda row: freq[e, (c // v * tiles + start + row) * v + c % v + ci],
                    lambda column, lane: weight[panel, e, c + ci, column, lane],
                )
        acc.each(
            lambda row, column, lane: T.buffer_store(
                product,
                acc.get(row, column, lane),
                [e, ((start + row) * width + column) * v + lane],
            )
        )

    def _transform_input(c: Any, count: int, plane: Any, half: Any, freq: Any) -> None:
        """The tiles of one block of channels."""
        with emit.loop(count) as r, emit.loop(columns) as x:
            with T.unroll(0, a) as j:
                emit_linear_map(
                    transform.input,
                    v,
                    lambda i, lane: plane(r * m + i, x * m + j, lane),
                    lambda i, lane, value: T.buffer_store(half, value, [(i * a + j) * v + lane]),
                )
            with T.unroll(0, a) as i:
                emit_linear_map(
                    transform.input,
                    v,
                    lambda j, lane: half[(i * a + j) * v + lane],
                    lambda j, lane, value: T.buffer_store(
                        freq,
                        value,
                        [i * a + j, ((c * count + r) * columns + x) * v + lane],
                    ),
                )

    if widened:
        strips = params["strips"]
        tasks = -(-cut.height // (strips * share))
        empty = tasks * strips * share - cut.height >= share
        with emit.parallel_tasks(w.batch, tasks) as (n, c):
            given.begin(n)
            with emit.loop(strips) as strip:
                first = (c * strips + strip) * share
                with when([first < cut.height] if empty else []):
                    task(n, first, share, 0, strip)
        return
    with emit.parallel_tasks(w.batch, full + (1 if rest else 0), pieces) as (n, c, piece):
        given.begin(n)
        if not rest:
            task(n, c * share, share, piece)
        elif not full:
            task(n, 0, rest, piece)
        else:
            with T.If(c < full):
                with T.Then():
                    task(n, c * share, share, piece)
                with T.Else():
                    task(n, full * share, rest, piece)
