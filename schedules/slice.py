"""A part of a tensor along one axis, copied in contiguous runs.

In the channel-blocked layout a part of the channels is one run of whole blocks. A part that is
one run of the whole tensor needs no kernel: lowering makes it a view.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from tvm import tirx

from tvm_ext.dtypes import itemsize
from tvm_ext.schedules import costs, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.run_copy import PIECES, Run, copy_runs, default_pieces
from tvm_ext.target import CpuTarget


@dataclass(frozen=True)
class SliceWorkload:
    """Elements [begin, end) of one axis, all of the others."""

    shape: tuple[int, ...]
    axis: int
    begin: int
    end: int
    dtype: str = "float32"

    @property
    def out_shape(self) -> tuple[int, ...]:
        return (*self.shape[: self.axis], self.end - self.begin, *self.shape[self.axis + 1 :])

    @property
    def flops(self) -> int:
        return 0

    @property
    def bytes(self) -> int:
        return 2 * itemsize(self.dtype) * prod(self.out_shape)

    def run(self, block: int) -> tuple[int, int, int]:
        """How many rows there are, where in each the part begins, and its length, in elements."""
        stored, axis = stored_shape(self.shape, block), self.axis
        inner = prod(stored[axis + 1 :])
        scale = block if block and axis == 1 else 1
        begin, length = self.begin // scale, -(-(self.end - self.begin) // scale)
        return prod(stored[:axis]), begin * inner, length * inner

    def blocks(self, lanes: int) -> bool:
        """Whether the part is one of whole channel blocks too, or of another axis."""
        if not 3 <= len(self.shape) <= 5 or self.dtype != "float32":
            return False
        last = self.end == self.shape[1]
        return self.axis != 1 or (self.begin % lanes == 0 and (self.end % lanes == 0 or last))


@register
class Slice(Algorithm[SliceWorkload]):
    """Copies of runs.

    Parameters of the plan: `pieces` in which each run is cut for the threads; `parallel`, whether
    threads share the pieces.
    """

    name: ClassVar[str] = "slice"
    workload_type: ClassVar[type] = SliceWorkload

    def supports(self, workload: SliceWorkload, target: CpuTarget) -> Support:
        if prod(workload.out_shape) == 0:
            return refuse("the part has no elements")
        return YES

    def layouts(self, workload: SliceWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        v = target.lanes
        return ((0, 0), (v, v)) if workload.blocks(v) else ((0, 0),)

    def space(self, workload: SliceWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {"pieces": PIECES, "parallel": (False, True)}

    def default(self, workload: SliceWorkload, target: CpuTarget) -> dict[str, Any]:
        parallel = costs.copies_in_parallel(workload.bytes, target)
        pieces = default_pieces(workload.run(0)[0], parallel, target)
        return {"pieces": pieces, "parallel": parallel}

    def cost(self, workload: SliceWorkload, params: Params, target: CpuTarget) -> float:
        return costs.copy_cost(workload.bytes, params["parallel"], target)

    def kernel(
        self, workload: SliceWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target, layout[0]))


def _emit(w: SliceWorkload, params: Params, target: CpuTarget, block: int) -> None:
    stored = stored_shape(w.shape, block)
    rows, begin, size = w.run(block)
    data = emit.argument("data", stored, w.dtype)
    out = emit.argument("out", stored_shape(w.out_shape, block), w.dtype)
    data = emit.view(data, (rows, prod(stored) // rows), w.dtype)
    out = emit.view(out, (rows, size), w.dtype)
    run = Run(data, begin, 0, size)
    copy_runs(out, rows, [run], w.dtype, params["pieces"], params["parallel"], target.lanes)
