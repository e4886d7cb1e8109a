"""Product of two tensors that are both computed at run time, as in attention.

The loops are those of `matmul`, in each batch element on its own. The right side isn't known ahead
of time, so a task copies one panel of it at a time to where it is read in order; with only a few
rows to share that copy, the right side is read in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, ClassVar

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit, gemm, gemm_cuts
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.panel_copy import CYCLES, copy_panel, copy_way, readable
from tvm_ext.schedules.strided_product import PanelOf, emit_product, has_rows
from tvm_ext.schedules.tiles import Tile
from tvm_ext.target import CpuTarget


@register
class BatchMatmul(Algorithm[MatmulWorkload]):
    """Any strided views whose result has its columns side by side.

    Parameters of the plan: `tile` rows and `blocks` vectors of columns in registers; `chunks`
    parts of the rows and `pieces` parts of the columns of one batch element, the units of work
    of the threads; `k_parts` parts of the reduction; `copy` copies each panel of the right side.
    """

    name: ClassVar[str] = "batch_matmul"
    workload_type: ClassVar[type] = MatmulWorkload

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        if workload.dtype != "float32":
            return refuse(f"dtype {workload.dtype}; only float32")
        if workload.packed:
            return refuse("packed is True; only two operands computed at run time")
        return has_rows(workload.out, "result")

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        f = fold_batch(workload)
        tiles = gemm_cuts.panel_tiles(f.m, f.n, target)
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunks": tuple(range(1, f.m + 1)),
            "pieces": tuple(range(1, -(-f.n // target.lanes) + 1)),
            "k_parts": gemm_cuts.legal_parts(f.k),
            "copy": (False, True) if readable(f.rhs, target.lanes) else (True,),
        }

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        f = fold_batch(workload)
        tile = gemm_cuts.best_panel_tile(f.m, f.n, target, f.lhs.strides[-2])
        parts = gemm_cuts.best_parts(f.k, tile, target)
        chunks, pieces = gemm_cuts.share_out(f.m, f.n, f.k, parts, tile, target, prod(f.batch))
        copy = f.m > 2 * tile.rows or not readable(f.rhs, target.lanes)
        return {
            "tile": tile.rows, "blocks": tile.columns, "chunks": chunks, "pieces": pieces,
            "k_parts": parts, "copy": copy,
        }  # fmt: skip

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        f = fold_batch(workload)
        tile = Tile(params["tile"], params["blocks"])
        share = gemm_cuts.panel_efficiency(tile, f.m, f.n, target, f.lhs.strides[-2])
        cores = costs.busy_cores(prod(f.batch) * params["chunks"] * params["pieces"], target)
        compute = 2 * f.macs / share
        if params["copy"]:
            # In operations that the FMA units could have done meanwhile.
            copied = prod(f.batch) * params["chunks"] * f.k * f.n
            way = copy_way(f.rhs, f.k // params["k_parts"], target.lanes)
            compute += copied * CYCLES[way] * 4 * target.lanes
        traffic = f.bytes + 2 * prod(f.out.shape) * (params["k_parts"] - 1)
        return compute / (target.fma_peak * cores) + 0.5 * traffic / target.memory_bandwidth

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        w, p, f = workload, params, fold_batch(workload)
        b = gemm.Blocking(
            f.m, f.n, f.k, target.lanes, p["blocks"], p["tile"], p["chunks"], p["pieces"],
            p["k_parts"],
        )  # fmt: skip
        panels = partial(_panels, f, b, p["copy"])
        return emit.build(lambda: emit_product(w, b, w.rhs_shape, panels))


def _panels(
    f: MatmulWorkload, b: gemm.Blocking, copy: bool, right: Any, batch: Sequence[Any]
) -> PanelOf:
    """Panels of one batch element, read in place or copied."""
    local = emit.workspace((b.steps, b.blocks, b.lanes)) if copy else None
    if local is not None and b.n < b.span:
        # The lanes past n are multiplied too: they must hold numbers.
        with emit.loop(b.steps) as step, T.vectorized(0, b.lanes) as i:
            T.buffer_store(local, tirx.const(0.0, "float32"), [step, 0, i])

    def panel_of(panel: Any, base: Any) -> gemm.Right:
        column0 = cuts.panel_start(panel, b.span, b.n)

        def at(step: Any, column: Any) -> Any:
            return f.rhs.index((*batch, base + step, column0 + column))

        if local is None:
            return lambda step, c, i: right[at(step, c * b.lanes + i)]
        copy_panel(copy_way(f.rhs, b.steps, b.lanes), b, local, right, at)
        return lambda step, c, i: local[step, c, i]

    return panel_of
