"""Matrix product with a constant right side, packed in panels ahead of time.

The loops are those of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
(2008), with the operand order of a network: a chunk of the left side's rows stays in the L2 cache
while panels of weights pass through L1, and a tile of rows x vectors accumulates in registers. The
left side isn't packed, because every address in it is a constant away from one pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.tiles import Tile, efficiency, legal_tiles
from tvm_ext.schedules.workload import MatmulWorkload
from tvm_ext.target import CpuTarget

# Shares of the L2 cache that the left side's chunk and one panel of weights may take.
_CHUNK_SHARE = 0.5
_PANEL_SHARE = 0.125
_UNROLL = 8
# Waking the threads takes about as long as one core needs for this many operations.
PARALLEL_FLOPS = 500_000


@register
class Matmul(Algorithm[MatmulWorkload]):
    """Row-major left side and output, weights in panels of `blocks` vectors.

    Parameters of the plan: `tile` rows and `blocks` vectors of columns in registers; `chunks`
    parts of the rows and `pieces` parts of the columns, the units of work of the threads;
    `k_parts` parts of the reduction, each of whose weight panels stays in cache.
    """

    name: ClassVar[str] = "matmul"
    workload_type: ClassVar[type] = MatmulWorkload

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        if workload.dtype != "float32":
            return refuse(f"dtype {workload.dtype}; only float32")
        if not workload.packed:
            return refuse("packed is False; only a constant right side")
        return YES

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        rows = row_count(workload)
        tiles = legal_tiles(rows, max(1, workload.n // target.lanes), target)
        panels = -(-workload.n // target.lanes)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunks": tuple(range(1, -(-rows // 4) + 1)),
            "pieces": tuple(range(1, panels + 1)),
            "k_parts": tuple(d for d in range(1, 65) if workload.k % d == 0),
        }

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        w, rows = workload, row_count(workload)
        tile = best_panel_tile(rows, w.n, target)
        panel_bytes = 4 * w.k * tile.columns * target.lanes
        parts = [d for d in range(1, 65) if w.k % d == 0]
        enough = [d for d in parts if panel_bytes <= d * _PANEL_SHARE * target.l2]
        k_parts = enough[0] if enough else parts[-1]
        fit = max(4, int(_CHUNK_SHARE * target.l2 / (4 * w.k // k_parts)))
        chunks, pieces = share_out(w, tile, fit, target)
        return {
            "tile": tile.rows, "blocks": tile.columns, "chunks": chunks, "pieces": pieces,
            "k_parts": k_parts,
        }  # fmt: skip

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        w, rows = workload, row_count(workload)
        share = panel_efficiency(Tile(params["tile"], params["blocks"]), rows, w.n, target)
        tasks = params["chunks"] * params["pieces"]
        cores = tasks / -(-tasks // target.cores)
        # Weights come from memory once, and from the next cache level again for each chunk.
        traffic = w.bytes + 0.25 * w.weight_bytes * (params["chunks"] - 1)
        traffic += 8 * rows * w.n * 0.25 * (params["k_parts"] - 1)
        return 2 * w.macs / (share * target.fma_peak * cores) + (
            0.5 * traffic / target.memory_bandwidth
        )

    def pack(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        return [pack_panels(workload, weights[0], params["blocks"], target.lanes)]

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target))


def row_count(w: MatmulWorkload) -> int:
    """Rows of the left side, all batch dimensions folded in."""
    return prod(w.batch) * w.m


def panel_start(panel: Any, span: int, n: int) -> Any:
    """First column of a panel of `span` columns; the last one overlaps the one before it."""
    if n % span == 0 or n < span:
        return panel * span
    if isinstance(panel, int):
        return min(panel * span, n - span)
    return tirx.min(panel * span, n - span)


def pack_panels(w: MatmulWorkload, weight: np.ndarray, blocks: int, lanes: int) -> np.ndarray:
    """(k, n), or (n, k) with transpose_b, to (panels, k, blocks, lanes)."""
    matrix = weight.reshape((w.n, w.k) if w.transpose_b else (w.k, w.n))
    if w.transpose_b:
        matrix = matrix.T
    span = blocks * lanes
    if w.n < span:
        matrix = np.pad(matrix, [(0, 0), (0, span - w.n)])
    starts = [panel_start(p, span, w.n) for p in range(-(-w.n // span))]
    panels = np.stack([matrix[:, s : s + span] for s in starts])
    return np.ascontiguousarray(panels.reshape(len(starts), w.k, blocks, lanes))


def panel_efficiency(tile: Tile, rows: int, n: int, target: CpuTarget) -> float:
    """Share of the FMA peak, with the columns that overlapped panels compute twice."""
    span = tile.columns * target.lanes
    panels = -(-n // span)
    return efficiency(tile, rows, panels * tile.columns, target) * n / (panels * span)


def best_panel_tile(rows: int, n: int, target: CpuTarget) -> Tile:
    """The register tile of highest modelled efficiency; ties go to the one that loads least."""
    return max(
        legal_tiles(rows, max(1, n // target.lanes), target),
        key=lambda t: (
            round(panel_efficiency(t, rows, n, target), 3),
            -(t.rows + t.columns) / (t.rows * t.columns),
        ),
    )


def share_out(w: MatmulWorkload, tile: Tile, fit: int, target: CpuTarget) -> tuple[int, int]:
    """(chunks, pieces) such that `fit` rows stay in cache and every core has as much to do."""
    rows = row_count(w)
    panels = -(-w.n // (tile.columns * target.lanes))
    chunks = -(-rows // fit)
    if w.flops < PARALLEL_FLOPS or target.cores == 1 or chunks % target.cores == 0:
        return chunks, 1
    if chunks > target.cores:
        return -(-chunks // target.cores) * target.cores, 1
    # Columns are shared first: then a core reads its weights only.
    if panels >= 4 * target.cores:
        return chunks, target.cores
    if rows >= 2 * target.cores * tile.rows:
        return target.cores, 1
    return chunks, min(panels, target.cores)


def _emit(w: MatmulWorkload, params: Params, target: CpuTarget) -> None:
    v, width, n, k = target.lanes, params["blocks"], w.n, w.k
    rows, span = row_count(w), width * v
    panels = -(-n // span)
    data = emit.argument("data", (rows, k))
    weight = emit.argument("weight", (panels, k, width, v))
    operands = emit.declare_operands(w.epilogue, 0)
    out = emit.argument("out", (rows, n))
    finish = emit.rowwise_epilogue(w.epilogue, operands, w.out_shape or (rows, n))

    chunk = -(-rows // params["chunks"])
    chunks = -(-rows // chunk)
    piece_panels = -(-panels // params["pieces"])
    pieces = -(-panels // piece_panels)
    parts = params["k_parts"]
    steps = k // parts
    unroll = emit.largest_divisor(steps, _UNROLL)

    turns = sum(count for count, _ in emit.split_extent(chunk, params["tile"]))
    lines = -(-unroll * span // (16 * turns))
    import os
    lines = 0 if os.environ.get("NOPF") else lines
    ahead = emit.view(weight, (panels * k * span,))
    def tile(panel: Any, local_panel: Any, part: Any, first: Any, row0: Any, size: int,
             partial: Any, turn: Any) -> None:  # fmt: skip
        acc = emit.RegisterTile(size, width, v)
        if partial is None:
            acc.zero()
        else:
            with T.If(part == 0):
                with T.Then():
                    acc.zero()
                with T.Else():
                    acc.fill(lambda r, c, i: partial[local_panel, row0 + r, c, i])
        with emit.loop(steps // unroll) as outer:
            line = turn * (steps // unroll) + outer
            if lines:
              with T.If(line < -(-steps * span // 16 // lines)), T.Then():
                for j in range(lines):
                  emit.prefetch(ahead, [((panel + 1) * k + part * steps) * span + (line * lines + j) * 16], 2)
            with emit.loop(unroll, "unroll") as inner:
                step = part * steps + outer * unroll + inner
                acc.multiply_add(
                    lambda r: data[first + row0 + r, step],
                    lambda c, i: weight[panel, step, c, i],
                )
        column0 = panel_start(panel, span, n)

        def store(r: Any, c: Any, i: Any) -> None:
            row, column = first + row0 + r, column0 + c * v + i
            T.buffer_store(out, finish(row, column, acc.get(r, c, i)), [row, column])

        def write() -> None:
            if n >= span:
                acc.each(store)
            else:
                with emit.loop(size, "unroll") as r, emit.loop(n, "unroll") as i:
                    store(r, 0, i)

        if partial is None:
            write()
        else:
            with T.If(part == parts - 1):
                with T.Then():
                    write()
                with T.Else():
                    acc.each(
                        lambda r, c, i: T.buffer_store(
                            partial, acc.get(r, c, i), [local_panel, row0 + r, c, i]
                        )
                    )

    with emit.parallel_tasks(chunks, pieces) as (c, piece):
        # The last chunk overlaps the one before it: the same values are written twice.
        first = panel_start(c, chunk, rows)
        partial = emit.workspace((piece_panels, chunk, width, v)) if parts > 1 else None
        with emit.loop(parts) as part, emit.loop(piece_panels) as p:
            panel = piece * piece_panels + p if pieces > 1 else p
            # A piece past the end computes the last panel again.
            panel = tirx.min(panel, panels - 1) if panels % piece_panels else panel
            offset, turn = 0, 0
            for tiles, size in emit.split_extent(chunk, params["tile"]):
                with emit.loop(tiles) as t:
                    tile(panel, p, part, first, offset + t * size, size, partial, turn + t)
                offset += tiles * size
                turn += tiles
