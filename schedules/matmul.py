"""Matrix product with a constant right side, packed in panels ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, emit, gemm, gemm_cuts
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.tiles import Tile
from tvm_ext.schedules.workload import MatmulWorkload
from tvm_ext.target import CpuTarget


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
        return constant_right_side(workload)

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        rows = row_count(workload)
        tiles = gemm_cuts.panel_tiles(rows, workload.n, target)
        vectors = -(-workload.n // target.lanes)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunks": tuple(range(1, rows + 1)),
            "pieces": tuple(range(1, vectors + 1)),
            "k_parts": gemm_cuts.legal_parts(workload.k),
        }

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        w, rows = workload, row_count(workload)
        tile = gemm_cuts.best_panel_tile(rows, w.n, target)
        parts = gemm_cuts.best_parts(w.k, tile, target)
        chunks, pieces = gemm_cuts.share_out(rows, w.n, w.k, parts, tile, target)
        return {
            "tile": tile.rows, "blocks": tile.columns, "chunks": chunks, "pieces": pieces,
            "k_parts": parts,
        }  # fmt: skip

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        w, rows = workload, row_count(workload)
        share = gemm_cuts.panel_efficiency(
            Tile(params["tile"], params["blocks"]), rows, w.n, target
        )
        cores = costs.busy_cores(params["chunks"] * params["pieces"], target)
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
        return [pack_weight(workload, weights[0], params["blocks"], target.lanes)]

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        w, p = workload, params
        blocking = gemm.Blocking(
            row_count(w), w.n, w.k, target.lanes, p["blocks"], p["tile"], p["chunks"], p["pieces"],
            p["k_parts"],
        )  # fmt: skip
        return emit.build(lambda: emit_packed(w, blocking))


def constant_right_side(w: MatmulWorkload) -> Support:
    """Whether the right side is a float32 weight."""
    if w.dtype != "float32":
        return refuse(f"dtype {w.dtype}; only float32")
    if not w.packed:
        return refuse("packed is False; only a constant right side")
    return YES


def row_count(w: MatmulWorkload) -> int:
    """Rows of the left side, all batch dimensions folded in."""
    return prod(w.batch) * w.m


def pack_weight(w: MatmulWorkload, weight: np.ndarray, blocks: int, lanes: int) -> np.ndarray:
    """(k, n), or (n, k) with transpose_b, to panels."""
    matrix = weight.reshape(w.n, w.k).T if w.transpose_b else weight.reshape(w.k, w.n)
    return gemm.pack_panels(matrix, blocks, lanes)


def emit_packed(w: MatmulWorkload, b: gemm.Blocking) -> None:
    """Declare the arguments and emit the parallel tasks of a product with packed weights."""
    out_shape = w.out_shape or (b.rows, b.n)
    data = emit.argument("data", w.lhs_shape or (*out_shape[:-1], b.k))
    weight = emit.argument("weight", (b.panels, b.k, b.blocks, b.lanes))
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", out_shape)
    left, out = emit.view(data, (b.rows, b.k)), emit.view(out, (b.rows, b.n))
    finish = rowwise_epilogue(w.epilogue, operands, out_shape)

    def store(row: Any, column0: Any, c: Any, i: Any, value: tirx.Expr) -> None:
        column = column0 + c * b.lanes + i
        T.buffer_store(out, finish(row, column, value), [row, column])

    flat = emit.view(weight, (b.panels * b.k * b.span,))

    def fetch(panel: Any, base: Any, element: Any) -> None:
        emit.prefetch(flat, [(panel * b.k + base) * b.span + element], 2)

    with emit.parallel_tasks(*b.tasks) as (chunk, piece):
        gemm.emit_task(
            b, chunk, piece,
            lambda row, step: left[row, step],
            lambda panel, base: lambda step, c, i: weight[panel, base + step, c, i],
            store,
            fetch,
        )  # fmt: skip
