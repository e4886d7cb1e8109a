"""Matrix product with a constant right side, packed in panels ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import emit, gemm, gemm_cuts
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_product import PanelOf, emit_product, has_rows
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
        return gemm_cuts.packed_space(fold_batch(workload).m, workload.n, workload.k, target)

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
        stride = fold_batch(workload).lhs.strides[-2]
        b = blocking(workload, params, target)
        return gemm_cuts.packed_seconds(b, workload.bytes, target, stride)

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
        return emit.build(lambda: emit_packed(workload, blocking(workload, params, target)))


def blocking(w: MatmulWorkload, params: Params, target: CpuTarget) -> gemm.Blocking:
    """The cuts that parameters stand for; those that an algorithm doesn't have are 1."""
    return gemm.Blocking(
        fold_batch(w).m, w.n, w.k, target.lanes, params["blocks"], params["tile"],
        params["chunks"], params.get("pieces", 1), params["k_parts"],
    )  # fmt: skip


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


@dataclass(frozen=True)
class PackedPanels:
    """Reads weights in panels, a flat buffer, as `gemm.emit_task` asks for them."""

    flat: Any
    b: gemm.Blocking

    def panel(self, panel: Any, base: Any) -> gemm.Right:
        """What reads a panel from a step on."""
        return lambda step, c, i: self.flat[self._start(panel, base + step) + c * self.b.lanes + i]

    def fetch(self, panel: Any, base: Any, element: Any) -> None:
        """Prefetch the cache line of an element that follows the start of a step."""
        emit.prefetch(self.flat, [self._start(panel, base) + element], 2)

    def _start(self, panel: Any, step: Any) -> Any:
        return (panel * self.b.k + step) * self.b.span


def emit_packed(w: MatmulWorkload, b: gemm.Blocking) -> None:
    """Declare the arguments and emit the parallel tasks of a product with packed weights."""

    def panels(right: Any, _: Sequence[Any]) -> PanelOf:
        return PackedPanels(right, b).panel

    def fetch(right: Any, *line: Any) -> None:
        PackedPanels(right, b).fetch(*line)

    emit_product(w, b, packed_shape(b), panels, fetch)


def packed_shape(b: gemm.Blocking) -> tuple[int, ...]:
    """The shape of weights in panels."""
    return b.panels, b.k, b.blocks, b.lanes
