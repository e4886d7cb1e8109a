"""Product of a few rows with a constant matrix, as fast as its weights can be read.

With up to four rows nothing is reused often enough to matter but the weights' bytes: they are
stored in the order in which they are read, each core reads its own part once, and the tile is as
wide as it takes to hide the latency of the FMAs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, emit, gemm, gemm_cuts
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.flattened import reads_blocks
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.matmul import constant_right_side, emit_packed, pack_weight
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.target import CpuTarget

# Beyond, register tiles of `matmul` reuse what they load.
MOST_ROWS = 4
_MOST_BLOCKS = 8
# Independent accumulators that keep two FMA pipes of latency 4 busy.
_CHAINS = 8


@register
class Gemv(Algorithm[MatmulWorkload]):
    """All rows in one register tile; a flattened feature map may be in channel blocks.

    The rows of the weights are packed in the order of the left side, which `flattened` makes.

    Parameters of the plan: `blocks` vectors of columns in registers; `pieces` parts of the
    columns, the units of work of the threads.
    """

    name: ClassVar[str] = "gemv"
    workload_type: ClassVar[type] = MatmulWorkload

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        rows = fold_batch(workload).m
        if rows > MOST_ROWS:
            return refuse(f"{rows} rows; at most {MOST_ROWS}")
        return constant_right_side(workload)

    def layouts(self, workload: MatmulWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        v = target.lanes
        return ((0, 0), (v, 0)) if reads_blocks(workload, v) else ((0, 0),)

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        vectors = -(-workload.n // target.lanes)
        return {
            "blocks": _legal_blocks(workload, target),
            "pieces": tuple(range(1, vectors + 1)),
        }

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        # The widest panel, unless a narrower one leaves less to compute twice at the end.
        blocks = max(
            _legal_blocks(w, target),
            key=lambda b: (round(_share(w, b, target), 2), b),
        )
        panels = -(-w.n // (blocks * target.lanes))
        pieces = min(panels, target.cores) if w.flops >= gemm_cuts.PARALLEL_FLOPS else 1
        return {"blocks": blocks, "pieces": pieces}

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        return gemv_seconds(workload, params, workload.bytes, target)

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
        stored = stored_shape(workload.lhs_shape, layout[0])
        cuts = blocking(workload, params, target)
        return emit.build(lambda: emit_packed(replace(workload, lhs_shape=stored), cuts))


def blocking(w: MatmulWorkload, params: Params, target: CpuTarget) -> gemm.Blocking:
    """The cuts that parameters stand for: all rows in a tile."""
    rows = fold_batch(w).m
    return gemm.Blocking(
        rows, w.n, w.k, target.lanes, params["blocks"], rows, pieces=params["pieces"]
    )


def gemv_seconds(w: MatmulWorkload, params: Params, nbytes: int, target: CpuTarget) -> float:
    """Seconds of a product of a few rows that moves so many bytes."""
    cores = costs.busy_cores(params["pieces"], target)
    compute = 2 * w.macs / (_share(w, params["blocks"], target) * target.fma_peak * cores)
    return compute + 0.5 * nbytes / target.memory_bandwidth


def _legal_blocks(w: MatmulWorkload, target: CpuTarget) -> tuple[int, ...]:
    rows = fold_batch(w).m
    # One vector of weights at a time, and a broadcast for each row.
    fit = max(1, (target.registers - rows - 1) // rows)
    return tuple(range(1, min(fit, _MOST_BLOCKS, max(1, w.n // target.lanes)) + 1))


def _share(w: MatmulWorkload, blocks: int, target: CpuTarget) -> float:
    """Share of the FMA peak that the tile allows when its weights are in cache."""
    panels = -(-w.n // (blocks * target.lanes))
    useful = w.n / (panels * blocks * target.lanes)
    return useful * min(1.0, fold_batch(w).m * blocks / _CHAINS)
