"""The stages of a chain of rows: a pool over all positions, products with constants, a norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import emit, gemm, gemv
from tvm_ext.schedules.base import Params, Support, refuse
from tvm_ext.schedules.emit_epilogue import apply_epilogue, rowwise_epilogue
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.matmul import PackedPanels, pack_weight, packed_shape
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.norm_stage import declare_weights, norm_seconds, normalize_rows, takes_rows
from tvm_ext.schedules.normalize import Normalize
from tvm_ext.schedules.pool import Pool
from tvm_ext.schedules.pool_global import pool_planes
from tvm_ext.schedules.row_stage import Read, RowStage, Write
from tvm_ext.schedules.stages import stages
from tvm_ext.schedules.strided_product import reads_all_rows, stores_all_rows
from tvm_ext.schedules.workload import NormalizeWorkload, PoolWorkload
from tvm_ext.target import CpuTarget


class GlobalPoolStage(RowStage):
    """A pool over all positions: of each sample a row."""

    alone = Pool()
    parameters: ClassVar[dict[str, str]] = {"vectors": "pool_vectors", "parallel": "pool_parallel"}
    workload: PoolWorkload

    def __init__(self, workload: PoolWorkload, *place: Any) -> None:
        super().__init__(workload, *place)
        self.rows, self.columns = workload.shape[:2]

    def supports(self, target: CpuTarget) -> Support:
        w = self.workload
        if not w.is_global:
            return refuse(f"a pool to {w.out_shape[2:]}; only one window without padding")
        if w.epilogue.operands:
            return refuse("a step behind the pool reads a tensor")
        return self.alone.supports(w, target)

    def seconds(self, params: Params, target: CpuTarget) -> float:
        return self.alone.cost(self.workload, self.own(params), target)

    def declare_input(self, block: int) -> None:
        self._block = block
        self._data = emit.argument("data", stored_shape(self.workload.shape, block))

    def emit(self, params: Params, target: CpuTarget, read: Read | None, write: Write) -> None:
        w, block = self.workload, self._block

        def store(n: Any, plane: Any, lane: Any, value: tirx.Expr) -> None:
            channel = plane * block + lane if block else plane
            write(n, channel, apply_epilogue(w.epilogue, [], 0, [], [value]))

        pool_planes(w, self.own(params), target.lanes, block, self._data, store)


class ProductStage(RowStage):
    """A product with a constant matrix, all rows in a register tile."""

    alone = gemv.Gemv()
    parameters: ClassVar[dict[str, str]] = {"blocks": "blocks_{}", "pieces": "pieces_{}"}
    weights = 1
    workload: MatmulWorkload

    def __init__(self, workload: MatmulWorkload, *place: Any) -> None:
        super().__init__(workload, *place)
        self._folded = fold_batch(workload)
        self.rows, self.columns = self._folded.m, workload.n

    def supports(self, target: CpuTarget) -> Support:
        w, before = self.workload, self.before
        support = self.alone.supports(w, target)
        if before is not None:
            support = support and reads_all_rows(w)
            if support and (before.rows, before.columns) != (self.rows, w.k):
                made = f"{before.rows} rows of {before.columns}"
                return refuse(f"a product reads {made} as {self.rows} of {w.k}")
        return support if self.last else support and stores_all_rows(w)

    def seconds(self, params: Params, target: CpuTarget) -> float:
        handed = self.rows * self.workload.k if self.before else 0
        handed += 0 if self.last else self.rows * self.columns
        nbytes = self.workload.bytes - 4 * handed
        return gemv.gemv_seconds(self.workload, self.own(params), nbytes, target)

    def pack(
        self, params: Params, target: CpuTarget, weights: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        return [pack_weight(self.workload, weights[0], self.own(params)["blocks"], target.lanes)]

    def declare_input(self, block: int) -> None:
        self._left = emit.argument("left", stored_shape(self.workload.lhs_shape, block))

    def declare_weights(self, params: Params, target: CpuTarget) -> None:
        self._cuts = gemv.blocking(self.workload, self.own(params), target)
        self._right = emit.argument("right", packed_shape(self._cuts))

    def place(self, row: Any, column: Any) -> Any:
        return self._folded.out.index((row, column))

    def emit(self, params: Params, target: CpuTarget, read: Read | None, write: Write) -> None:
        w, b, lhs = self.workload, self._cuts, self._folded.lhs
        panels = PackedPanels(emit.view(self._right, (prod(packed_shape(b)),)), b)
        finish = rowwise_epilogue(w.epilogue, self._operands, w.out.shape)
        if read is None:
            left = emit.view(self._left, (prod(w.lhs_shape),))

        def element(row: Any, step: Any) -> tirx.Expr:
            return left[lhs.index((row, step))] if read is None else read(row, step)

        def store(row: Any, column0: Any, c: Any, i: Any, value: tirx.Expr) -> None:
            column = column0 + c * b.lanes + i
            write(row, column, finish(row, column, value))

        with emit.parallel_tasks(*b.tasks) as (chunk, piece):
            gemm.emit_task(b, chunk, piece, element, panels.panel, store)


class NormStage(RowStage):
    """Softmax or another norm of the rows, on the calling thread."""

    alone = Normalize()
    workload: NormalizeWorkload

    def __init__(self, workload: NormalizeWorkload, *place: Any) -> None:
        super().__init__(workload, *place)
        self.rows, self.columns = workload.rows, workload.columns
        self.weights = workload.scale + workload.shift

    def supports(self, target: CpuTarget) -> Support:
        assert self.before is not None  # a norm alone makes no chain
        return takes_rows(self.workload, (self.before.rows, self.before.columns), target)

    def seconds(self, params: Params, target: CpuTarget) -> float:
        return norm_seconds(self.workload, target)

    def declare_weights(self, params: Params, target: CpuTarget) -> None:
        self._weights = declare_weights(self.workload)

    def emit(self, params: Params, target: CpuTarget, read: Read | None, write: Write) -> None:
        w = self.workload
        assert read is not None
        finish = rowwise_epilogue(w.epilogue, self._operands, w.out_shape)
        normalize_rows(
            w, target.lanes, self.rows, self._weights, read,
            lambda row, x, value: write(row, x, finish(row, x, value)),
        )  # fmt: skip


_STAGES: dict[type, Callable[..., RowStage]] = {
    PoolWorkload: GlobalPoolStage, MatmulWorkload: ProductStage, NormalizeWorkload: NormStage,
}  # fmt: skip


def row_stages(workload: Any) -> list[RowStage]:
    """The stages of a workload and its producers, the first first."""
    parts = stages(workload)
    made: list[RowStage] = []
    for i, part in enumerate(parts):
        own = part if isinstance(part, PoolWorkload) else replace(part, producer=None)
        number = sum(type(other) is type(part) for other in parts[: i + 1])
        before = made[-1] if made else None
        made.append(_STAGES[type(part)](own, before, i == len(parts) - 1, number))
    return made
