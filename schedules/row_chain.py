"""A few rows through several stages in one kernel, as at the end of a classifier and in a squeeze
and excitation block.

A stage needs all rows of the one before it: each is a loop of its own, shared among the threads
where it is large enough. The rows between are in scratch memory that stays in cache. What is saved
is calls, and the traffic between them.
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
from tvm_ext.schedules.gemv import MOST_ROWS
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.row_chain_stages import row_stages
from tvm_ext.schedules.row_stage import Read, RowStage
from tvm_ext.schedules.scratch_rows import ScratchRows
from tvm_ext.schedules.workload import NormalizeWorkload, PoolWorkload
from tvm_ext.target import CpuTarget


@register
class RowChain(Algorithm[Any]):
    """A pool over all positions, products with constant matrices, a norm: two to four of these.

    Parameters of the plan: `pool_vectors` and `pool_parallel`, as of `pool`; `blocks_1` and
    `pieces_1`, as of `gemv`, for the first product, `blocks_2` and `pieces_2` for the second, and
    so on.
    """

    name: ClassVar[str] = "row_chain"
    workload_type: ClassVar[tuple[type, ...]] = (MatmulWorkload, NormalizeWorkload)
    producers: ClassVar[tuple[tuple[type, ...], ...]] = (
        (PoolWorkload,),
        (MatmulWorkload,),
        (MatmulWorkload, PoolWorkload),
        (MatmulWorkload, MatmulWorkload),
        (MatmulWorkload, MatmulWorkload, PoolWorkload),
        (MatmulWorkload, MatmulWorkload, MatmulWorkload),
    )

    def supports(self, workload: Any, target: CpuTarget) -> Support:
        chain = row_stages(workload)
        if (rows := chain[-1].rows) > MOST_ROWS:
            return refuse(f"{rows} rows; at most {MOST_ROWS}")
        refusals = (stage.supports(target) for stage in chain)
        return next((refusal for refusal in refusals if not refusal), YES)

    def layouts(self, workload: Any, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        first = row_stages(workload)[0]
        return tuple((block, 0) for block, _ in first.alone.layouts(first.workload, target))

    def space(self, workload: Any, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        chain = row_stages(workload)
        return {key: legal for stage in chain for key, legal in stage.space(target).items()}

    def default(self, workload: Any, target: CpuTarget) -> dict[str, Any]:
        chain = row_stages(workload)
        return {key: value for stage in chain for key, value in stage.default(target).items()}

    def cost(self, workload: Any, params: Params, target: CpuTarget) -> float:
        return sum(stage.seconds(params, target) for stage in row_stages(workload))

    def pack(
        self, workload: Any, params: Params, target: CpuTarget, weights: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        packed: list[np.ndarray] = []
        rest = list(weights)
        for stage in reversed(row_stages(workload)):
            own, rest = rest[: stage.weights], rest[stage.weights :]
            packed += stage.pack(params, target, own)
        return packed

    def kernel(
        self, workload: Any, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target, layout[0]))


def _emit(w: Any, params: Params, target: CpuTarget, block: int) -> None:
    """Declare the arguments and emit the stages one after the other."""
    chain = row_stages(w)
    chain[0].declare_input(block)
    for stage in reversed(chain):
        stage.declare_weights(params, target)
    for i, stage in enumerate(chain):
        stage.declare_operands(f"x{i}_")
    out = emit.argument("out", w.out_shape)
    out = emit.view(out, (prod(w.out_shape),))

    read: Read | None = None
    for stage in chain[:-1]:
        rows = _scratch(stage, target)
        stage.emit(params, target, read, rows.store)
        read = rows.load
    last = chain[-1]
    last.emit(
        params, target, read,
        lambda row, column, value: T.buffer_store(out, value, [last.place(row, column)]),
    )  # fmt: skip


def _scratch(stage: RowStage, target: CpuTarget) -> ScratchRows:
    """Room for a stage's rows; a pool of channel blocks stores whole vectors."""
    return ScratchRows(stage.rows, -(-stage.columns // target.lanes) * target.lanes)
