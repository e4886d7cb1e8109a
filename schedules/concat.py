"""Concatenation: every input is copied in contiguous runs to its place in the output.

In the channel-blocked layout an input is one run of whole blocks, if its channels fill them.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from tvm import tirx

from tvm_ext.schedules import costs, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.run_copy import PIECES, Run, copy_runs, default_pieces
from tvm_ext.schedules.workload import ConcatWorkload
from tvm_ext.target import CpuTarget


@register
class Concat(Algorithm[ConcatWorkload]):
    """Copies of runs.

    Parameters of the plan: `pieces` in which each run is cut for the threads; `parallel`, whether
    threads share the pieces.
    """

    name: ClassVar[str] = "concat"
    workload_type: ClassVar[type] = ConcatWorkload

    def supports(self, workload: ConcatWorkload, target: CpuTarget) -> Support:
        w = workload
        if not 0 <= w.axis < len(w.shapes[0]):
            return refuse(f"axis {w.axis} of rank {len(w.shapes[0])}")
        for i, shape in enumerate(w.shapes):
            if prod(shape) == 0:
                return refuse(f"input {i} of shape {shape} has no elements")
        return YES

    def layouts(self, workload: ConcatWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        w, v = workload, target.lanes
        fits = (
            w.axis == 1
            and 2 <= len(w.shapes[0]) <= 5
            and w.dtype in ("float32", "int8", "uint8")
            and all(shape[1] % v == 0 for shape in w.shapes[:-1])
        )
        return ((0, 0), (v, v)) if fits else ((0, 0),)

    def space(self, workload: ConcatWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {"pieces": PIECES, "parallel": (False, True)}

    def default(self, workload: ConcatWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        parallel = costs.copies_in_parallel(w.bytes, target)
        runs = prod(w.shapes[0][: w.axis])
        return {"pieces": default_pieces(runs, parallel, target), "parallel": parallel}

    def cost(self, workload: ConcatWorkload, params: Params, target: CpuTarget) -> float:
        return costs.copy_cost(workload.bytes, params["parallel"], target)

    def kernel(
        self, workload: ConcatWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target, layout[0]))


def _emit(w: ConcatWorkload, params: Params, target: CpuTarget, block: int) -> None:
    """Declare the arguments and copy the runs of each input, one after the other."""
    runs = prod(w.shapes[0][: w.axis])
    stored = [stored_shape(shape, block) for shape in w.shapes]
    sizes = [prod(shape) // runs for shape in stored]
    inputs = [emit.argument(f"data{i}", shape, w.dtype) for i, shape in enumerate(stored)]
    out = emit.argument("out", stored_shape(w.out_shape, block), w.dtype)
    parts = []
    done = 0
    for data, size in zip(inputs, sizes, strict=True):
        parts.append(Run(emit.view(data, (runs, size), w.dtype), 0, done, size))
        done += size
    out = emit.view(out, (runs, done), w.dtype)
    copy_runs(out, runs, parts, w.dtype, params["pieces"], params["parallel"], target.lanes)
