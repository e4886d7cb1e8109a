"""The loops of int8 spatial pack convolution.

A task takes a chunk of rows (or positions) and a piece of the output channels: each panel of
weights passes over the chunk's words, which stay in cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit, vectors
from tvm_ext.schedules.dot_product import dot_product
from tvm_ext.schedules.int8_kernel import IntegerTile
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.quantized_geometry import QuantizedGeometry
from tvm_ext.schedules.quantized_stage import Stager, Words
from tvm_ext.schedules.quantized_workload import QuantizedConvWorkload
from tvm_ext.schedules.requantize import requantized
from tvm_ext.target import CpuTarget

Index = Any


def output_blocks(w: QuantizedConvWorkload, target: CpuTarget) -> int:
    """Vectors of output channels."""
    return -(-w.out_channels // target.lanes)


def emit_int8_spatial_pack(
    w: QuantizedConvWorkload, params: Mapping[str, Any], target: CpuTarget, block: int
) -> None:
    """Declare the arguments and emit the loops over tasks, panels and tiles."""
    v, dot = target.lanes, dot_product(target)
    g = QuantizedGeometry.of(w, dot, v, block)
    width, blocks = params["blocks"], output_blocks(w, target)
    panels, outer = -(-blocks // width), g.words // g.step

    data = emit.argument("data", stored_shape(w.in_shape, block), w.dtype)
    weight = emit.argument("weight", (panels, outer, *g.kernel, g.step, width, v), "int32")
    # A panel longer than all channels computes vectors that nothing stores.
    count = max(blocks, width)
    bias = emit.argument("bias", (count, v), "int32")
    scale = emit.argument("scale", (count, v), "float32")
    out = emit.argument("out", stored_shape(w.out_shape, v), w.dtype)
    out = emit.view(out, (w.batch, blocks, *g.out, v), w.dtype)
    panel_words = g.words * prod(g.kernel) * width * v
    flat_weight = emit.view(weight, (panels * panel_words,), "int32")
    stager = Stager(w, g, dot, data, block, v)

    chunk = params["chunk"]
    piece_panels = -(-panels // params["pieces"])
    pieces = -(-panels // piece_panels)
    full, rest = divmod(g.extent, chunk)

    def task(n: Index, piece: Index, first: Index, size: int) -> None:
        source = stager.staged(n, first, size) if params["stage"] else stager.in_place()
        rows, positions = (1, size) if g.flat else (size, g.out[1])
        row_tiles = sum(tiles for tiles, _ in cuts.split_extent(positions, params["tile"]))
        turns = row_tiles * rows * outer
        with emit.loop(piece_panels) as p:
            panel = piece * piece_panels + p

            def body() -> None:
                with emit.loop(rows) as row:
                    offset, done = 0, 0
                    for tiles, height in cuts.split_extent(positions, params["tile"]):
                        with emit.loop(tiles) as t:
                            turn = row * row_tiles + done + t
                            tile(n, source, panel, first, row, offset + t * height, height, turn)
                        offset, done = offset + tiles * height, done + tiles

            def tile(
                n: Index, source: Words, panel: Index, first: Index, row: Index, column: Index,
                height: int, turn: Index,
            ) -> None:  # fmt: skip
                sums = IntegerTile(height, width, v)
                sums.zero()
                with emit.loop(outer) as co:
                    following = (panel + 1) * panel_words
                    # The tiles of a panel take turns in asking for the next panel's weights.
                    emit.prefetch_ahead(
                        flat_weight, following, panel_words, turn * outer + co, turns
                    )
                    with emit.nest(g.kernel) as taps:
                        for i in range(g.step):
                            sums.accumulate(
                                dot,
                                lambda r, i=i: word(
                                    n, source, co, i, first, row, column + r, taps
                                ),
                                lambda c, i=i: vectors.load(
                                    weight, [panel, co, *taps, i, c, 0], v
                                ),
                            )  # fmt: skip
                start = cuts.panel_start(panel, width, blocks)
                at_row = 0 if g.flat else first + row
                place = first + column if g.flat else column
                for r in range(height):
                    for c in range(min(width, blocks)):
                        total = sums.get(r, c) + vectors.load(bias, [start + c, 0], v)
                        value = requantized(
                            total, vectors.load(scale, [start + c, 0], v), w.result, w.dtype, v
                        )
                        vectors.store(out, value, [n, start + c, at_row, place + r, 0], v)

            if panels % piece_panels:
                with T.If(panel < panels), T.Then():
                    body()
            else:
                body()

    def word(
        n: Index, source: Words, co: Index, i: int, first: Index, row: Index, column: Index,
        taps: tuple[Index, ...],
    ) -> Any:  # fmt: skip
        """One data word for an output position `row` rows after the task's first."""
        if g.lane_words == 1:
            plane, lane = co * g.step + i, 0
        else:
            plane, lane = co * g.step // g.lane_words, co * g.step % g.lane_words + i
        if g.flat:
            at_row, at = 0, column if source.staged else first + column
        else:
            top = row if source.staged else first + row
            at_row = top * g.stride[0] + taps[0] * g.dilation[0]
            at = column * g.stride[1] + taps[1] * g.dilation[1]
        place = (plane, at_row, at * g.lane_words + lane)
        return source.buffer[place if source.staged else (n, *place)]

    with emit.parallel_tasks(w.batch, full + bool(rest), pieces) as (n, c, piece):
        if not rest:
            task(n, piece, c * chunk, chunk)
        elif not full:
            task(n, piece, 0, rest)
        else:
            with T.If(c < full):
                with T.Then():
                    task(n, piece, c * chunk, chunk)
                with T.Else():
                    task(n, piece, full * chunk, rest)
