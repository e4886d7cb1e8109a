"""The loops of a product of many rows with a sparse matrix, column by column.

A task copies its rows transposed, so that neighbouring rows are side by side in each column. Then
each panel of outputs passes over the copy: a tile of its outputs x vectors of rows accumulates in
registers while a loop takes the panel's columns one after the other. The sums of a strip of outputs
are transposed back when they are stored.

With several parts a copy has some of the columns only, few enough for the L1 cache, and the sums of
all strips wait in memory for the next part.
"""

from __future__ import annotations

import contextlib
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.lane_transpose import store_vector, transpose, vector_at
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.pointer_run import pointer_run
from tvm_ext.schedules.sparse_matmul_blocking import SparseBlocking
from tvm_ext.schedules.sparse_matmul_stage import stage_columns
from tvm_ext.schedules.sparse_product_columns import side_by_side, sum_columns
from tvm_ext.schedules.sparse_product_store import each_vector
from tvm_ext.schedules.sparse_product_weights import column_dtype


def emit_sparse_matmul(w: MatmulWorkload, b: SparseBlocking, pieces: int) -> None:
    """Declare the arguments and emit the loops over tasks, parts, strips, panels and columns."""
    f = fold_batch(w)
    kept = tirx.Var("kept", "int32")
    panels = b.parts * b.strips * b.strip_panels

    left = emit.argument("left", w.lhs_shape)
    values = emit.argument("values", (kept, b.outputs))
    columns = emit.argument("columns", (kept,), column_dtype(w.k))
    pointers = emit.argument("pointers", (panels + 1,), "int32")
    shares = emit.argument("shares", (pieces + 1,), "int32")
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    left = emit.view(left, (prod(w.lhs_shape),))
    out = emit.view(out, (prod(w.out_shape),))
    finish = rowwise_epilogue(w.epilogue, operands, w.out.shape)

    def tile_at(
        copy: Any, sums: Any, part: Any, panel: Any, row: Any, start: Any, size: int
    ) -> None:
        """Add a part of the products of a panel, whose sums are at `row`, and a tile of rows."""

        def place(r: Any, c: Any, lane: Any) -> list[Any]:
            return [row + r, start + c * b.width + lane]

        def add(acc: emit.RegisterTile, j: Any) -> None:
            column = emit.hold(T.cast(columns[j], "int32") * b.pitch)
            acc.multiply_add(
                lambda r: values[j, r],
                lambda c, lane: copy[column + start + c * b.width + lane],
                by_columns=b.outputs < size,
            )

        together = side_by_side(b.outputs * size)
        tiles = [emit.RegisterTile(b.outputs, size, b.width) for _ in range(together)]
        for acc in tiles:
            acc.zero()
        if b.parts > 1:
            with T.If(part > 0), T.Then():
                tiles[0].fill(lambda *at: sums[tuple(place(*at))])
        sum_columns(pointers, panel, tiles, add)
        tiles[0].each(
            lambda *at: T.buffer_store(sums, sum(acc.get(*at) for acc in tiles), place(*at))
        )

    def store_strip(sums: Any, slot: Any, strip: Any, first: Any) -> None:
        """Finish a strip's sums: what is in rows of `sums` is in columns of the result."""
        turned = emit.workspace((b.width, b.width))
        with emit.loop(b.positions) as s:
            at = s * b.width
            transpose(
                b.width,
                "float32",
                lambda i: vector_at(sums, [slot * b.width + i, at], b.width),
                lambda j, vector: store_vector(turned, vector, [j, 0], b.width),
            )

            def store(column: Any, lanes: int) -> None:
                rows = tirx.min(b.width, b.chunk - at) if b.chunk % b.width else b.width
                with T.serial(0, rows) as j, emit.loop(lanes, "vectorized") as lane:
                    row, place = first + at + j, column - strip * b.width + lane
                    value = finish(row, column + lane, turned[j, place])
                    T.buffer_store(out, value, [f.out.index((row, column + lane))])

            each_vector(strip, b.width, b.n, b.width, store)

    def task(first: Any, piece: Any) -> None:
        copy = emit.workspace((b.steps * b.pitch,))
        sums = emit.workspace(((b.strips if b.parts > 1 else 1) * b.width, b.pitch))
        with emit.loop(b.parts) as part:
            stage_columns(
                b, copy, left,
                lambda row, step: f.lhs.index((first + row, part * b.steps + step)),
            )  # fmt: skip
            # One loop over panels, of which LLVM can't know how many make a strip: it would unroll
            # an inner loop over those and keep the sums of all of them in registers.
            with pointer_run(shares, piece) as panel:
                strip, q = T.Bind(panel // b.strip_panels), T.Bind(panel % b.strip_panels)
                slot = strip if b.parts > 1 else 0
                run = part * b.strips * b.strip_panels + panel
                start = 0
                for count, size in b.tiles:
                    with emit.loop(count) as t:
                        at = start + t * (size * b.width)
                        tile_at(copy, sums, part, run, slot * b.width + q * b.outputs, at, size)
                    start += count * size * b.width
                done = [q == b.strip_panels - 1] if b.strip_panels > 1 else []
                done += [part == b.parts - 1] if b.parts > 1 else []
                with contextlib.ExitStack() as stack:
                    if done:
                        stack.enter_context(T.If(tirx.all(*done)))
                        stack.enter_context(T.Then())
                    store_strip(sums, slot, strip, first)

    with emit.parallel_tasks(b.tasks, pieces) as (c, piece):
        task(cuts.panel_start(c, b.chunk, b.rows), piece)
