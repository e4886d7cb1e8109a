"""Matrix product with a constant right side, packed in panels ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, emit, gemm, gemm_cuts
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_product import PanelOf, emit_product, has_rows
from tvm_ext.schedules.tiles import Tile
from tvm_ext.target import CpuTarget


@register
class Matmul(Algorithm[MatmulWorkload]):
    """Left side and output in rows that one stride walks, weights in panels of `blocks` vectors.

    Parameters of the plan: `tile` rows and `blocks` vectors of columns in registers; `chunks`
    parts of the rows and `pieces` parts of the columns, the units of work of the threads;
    `k_parts` parts of the reduction, each of whose weight panels stays in cache.
    """

    name: ClassVar[str] = "matmul"
    workload_type: ClassVar[type] = MatmulWorkload

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        return constant_right_side(workload)

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        rows = fold_batch(workload).m
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
        w, folded = workload, fold_batch(workload)
        rows = folded.m
        tile = gemm_cuts.best_panel_tile(rows, w.n, target, folded.lhs.strides[-2])
        parts = gemm_cuts.best_parts(w.k, tile, target)
        chunks, pieces = gemm_cuts.share_out(rows, w.n, w.k, parts, tile, target)
        return {
            "tile": tile.rows, "blocks": tile.columns, "chunks": chunks, "pieces": pieces,
            "k_parts": parts,
        }  # fmt: skip

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        w, folded = workload, fold_batch(workload)
        rows = folded.m
        share = gemm_cuts.panel_efficiency(
            Tile(params["tile"], params["blocks"]), rows, w.n, target, folded.lhs.strides[-2]
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
        w, rows, p = workload, fold_batch(workload).m, params
        blocking = gemm.Blocking(
            rows, w.n, w.k, target.lanes, p["blocks"], p["tile"], p["chunks"], p["pieces"],
            p["k_parts"],
        )  # fmt: skip
        return emit.build(lambda: emit_packed(w, blocking))


def constant_right_side(w: MatmulWorkload) -> Support:
    """Whether a product is one of rows with a float32 weight."""
    if w.dtype != "float32":
        return refuse(f"dtype {w.dtype}; only float32")
    if not w.packed:
        return refuse("packed is False; only a constant right side")
    if batch := fold_batch(w).batch:
        return refuse(f"batch {batch} can't be walked as rows by one stride")
    return has_rows(w.lhs, "left side") and has_rows(w.out, "result")


def weight_matrix(w: MatmulWorkload, weight: np.ndarray) -> np.ndarray:
    """The weight's view, (k, n)."""
    view = fold_batch(w).rhs
    return np.lib.stride_tricks.as_strided(
        weight.reshape(-1)[view.offset :], view.shape, [s * weight.itemsize for s in view.strides]
    )


def pack_weight(w: MatmulWorkload, weight: np.ndarray, blocks: int, lanes: int) -> np.ndarray:
    """The weight's view to panels."""
    return gemm.pack_panels(weight_matrix(w, weight), blocks, lanes)


def emit_packed(w: MatmulWorkload, b: gemm.Blocking) -> None:
    """Declare the arguments and emit the parallel tasks of a product with packed weights."""

    def start(panel: Any, step: Any) -> Any:
        return (panel * b.k + step) * b.span

    def panels(right: Any, _: Sequence[Any]) -> PanelOf:
        return lambda panel, base: (
            lambda step, c, i: right[start(panel, base + step) + c * b.lanes + i]
        )

    def fetch(right: Any, panel: Any, base: Any, element: Any) -> None:
        emit.prefetch(right, [start(panel, base) + element], 2)

    emit_product(w, b, (b.panels, b.k, b.blocks, b.lanes), panels, fetch)
