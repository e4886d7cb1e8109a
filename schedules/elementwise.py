"""Chains of scalar operations over broadcast tensors, one pass over memory.

Dimensions that every operand broadcasts alike are one dimension to the kernel, so a chain without
broadcasting is a single loop over the flat tensor, and a bias over channels has two or three.
An operand whose elements are repeated keeps the dimensions along which they are apart.
The innermost dimension is cut in vectors. What a whole number of vectors leaves over is covered
by a last vector that ends with the dimension and overlaps its neighbour: elements are computed
twice rather than one by one.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import boxes, costs, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.elementwise_planes import emit_turned, turns_maps
from tvm_ext.schedules.emit_epilogue import declare_operands
from tvm_ext.schedules.epilogue import SCALAR_OPS, Epilogue, Operand
from tvm_ext.schedules.fused_access import Access, fuse_dimensions
from tvm_ext.schedules.layout import operand_shape, stored_shape
from tvm_ext.schedules.step_depth import deepest
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.workload import ElementwiseWorkload, Shape
from tvm_ext.target import CpuTarget

_UNROLL = (1, 2, 4, 8)
# A parallel loop costs about 5 us to start and join; these take a core some 13 us (at 75 GB/s from
# the L2 cache, at 33 GFLOP/s on a chain of operations).
_PARALLEL_BYTES = 1 << 20
_PARALLEL_FLOPS = 400_000
# Each function of a chain multiplies TVM's compile time by about five (see `sharing`): four in a
# row take some seconds.
_MAX_DEPTH = 4
_TRANSCENDENTAL_FLOPS = 18
# Types of results that channel blocks are made of.
_BLOCKED = ("float32", "int8", "uint8")
# Operations whose result at the zeros of the missing lanes may not be finite.
_NOT_FINITE_AT_ZERO = frozenset(
    ("divide", "floor_divide", "mod", "floor_mod", "power", "rsqrt", "log", "acosh")
)


@register
class Elementwise(Algorithm[ElementwiseWorkload]):
    """Fused broadcast dimensions, vectorised along the innermost.

    Parameters of the plan: `vectors` that one iteration computes; `tasks` that threads share, 1
    for no parallel loop.
    """

    name: ClassVar[str] = "elementwise"
    workload_type: ClassVar[type] = ElementwiseWorkload

    def supports(self, workload: ElementwiseWorkload, target: CpuTarget) -> Support:
        w = workload
        if prod(w.shape) == 0:
            return refuse(f"shape {w.shape} has no elements")
        if w.epilogue.results:
            return refuse(f"epilogue.results is {w.epilogue.results}; an elementwise chain has 0")
        for step in w.epilogue.steps:
            if step.op not in SCALAR_OPS:
                return refuse(f"scalar operation {step.op!r} is unknown")
        for i, operand in enumerate(w.epilogue.operands):
            fits = len(operand.shape) == len(w.shape) and all(
                d in (1, n) for d, n in zip(operand.seen, w.shape, strict=True)
            )
            if not fits:
                return refuse(f"operand {i}: shape {operand.seen} doesn't broadcast to {w.shape}")
        depth = _depth(w.epilogue)
        if depth > _MAX_DEPTH:
            return refuse(f"{depth} functions like exp in a row; at most {_MAX_DEPTH}")
        return YES

    def layouts(
        self, workload: ElementwiseWorkload, target: CpuTarget
    ) -> tuple[tuple[int, int], ...]:
        w, v = workload, target.lanes
        strided = any(operand.view is not None for operand in w.epilogue.operands)
        if not 2 <= len(w.shape) <= 5 or w.dtype not in _BLOCKED or strided:
            return ((0, 0),)
        # The lanes past the last channel have to stay finite.
        risky = any(step.op in _NOT_FINITE_AT_ZERO for step in w.epilogue.steps)
        same = ((0, 0),) if w.shape[1] % v and risky else ((0, 0), (v, v))
        return (*same, (v, 0)) if turns_maps(w) else same

    def space(self, workload: ElementwiseWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        tasks = sorted({1, *(k * target.cores for k in (1, 2, 4, 8))})
        return {"vectors": _UNROLL, "tasks": tuple(tasks)}

    def default(self, workload: ElementwiseWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        big = _bytes(w) > _PARALLEL_BYTES or w.flops > _PARALLEL_FLOPS
        # A long chain fills the pipeline by itself; more copies of it would only spill.
        flops = w.epilogue.flops
        vectors = 4 if flops <= 16 else 2 if flops <= 32 else 1
        return {"vectors": vectors, "tasks": 4 * target.cores if big and target.cores > 1 else 1}

    def cost(self, workload: ElementwiseWorkload, params: Params, target: CpuTarget) -> float:
        w = workload
        cores = min(params["tasks"], target.cores)
        # Half the FMA rate is one operation an instruction; chains reach about half of that.
        compute = w.flops / (0.25 * target.fma_peak)
        return max(compute / cores, _bytes(w) / target.bandwidth(cores)) + costs.fork(cores)

    def kernel(
        self,
        workload: ElementwiseWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        if layout[0] != layout[1]:
            parallel = params["tasks"] > 1
            return emit.build(lambda: emit_turned(workload, parallel, target))
        return emit.build(lambda: _emit(workload, params, target, layout[1]))


def _depth(epilogue: Epilogue) -> int:
    """The most transcendental functions that feed one another."""
    costs = [Epilogue((step,)).flops for step in epilogue.steps]
    return deepest(epilogue, lambda number: costs[number] >= _TRANSCENDENTAL_FLOPS)


def _bytes(w: ElementwiseWorkload) -> int:
    """Bytes that move, each operand once."""
    operands = sum(prod(o.shape) * np.dtype(o.dtype).itemsize for o in w.epilogue.operands)
    return operands + prod(w.shape) * np.dtype(w.dtype).itemsize


def _access(operand: Operand, out: Shape, block: int) -> Access:
    """How an operand's argument is read, broadcast to the stored output."""
    if operand.view is not None:
        return Access(operand.view, (1,) * len(out))
    stored = operand_shape(operand.shape, block)
    # A blocked operand of one channel has no lane dimension of its own.
    lanes = (1,) if block and operand.shape[1] == 1 else ()
    whole = StridedView.contiguous((*stored, *lanes))
    strides = tuple(s if n != 1 else 0 for n, s in zip(whole.shape, whole.strides, strict=True))
    return Access(StridedView(out, strides), operand.factors + ((1,) if block else ()))


def _expanded(flat: Any, access: Access, first: list[Any], count: int, dtype: str) -> Any:
    """A vector of which several neighbours are one element, in registers.

    An index that isn't the same for all lanes or one more from lane to lane would be computed in a
    vector and taken out of it again; here each lane has its own.
    """
    vector = T.alloc_buffer((count,), dtype, scope="global")
    with emit.loop(count, "unroll") as lane:
        T.buffer_store(vector, flat[access.lane_index(first, lane, count)], [lane])
    return vector


def _emit(w: ElementwiseWorkload, params: Params, target: CpuTarget, block: int) -> None:
    """Declare the arguments, cut the fused dimensions in tasks, emit the loops of one."""
    arguments = declare_operands(w.epilogue, block)
    stored = stored_shape(w.shape, block)
    out = emit.argument("out", stored, w.dtype)
    operands = w.epilogue.operands
    extents, accesses = fuse_dimensions(stored, [_access(o, stored, block) for o in operands])
    out = emit.view(out, extents, w.dtype)
    flat = [
        emit.view(x, (prod(x.shape),), o.dtype) for x, o in zip(arguments, operands, strict=True)
    ]
    dtypes = [w.dtype, *(o.dtype for o in operands)]
    width = max(1, 4 * target.lanes // max(np.dtype(dtype).itemsize for dtype in dtypes))
    if any(access.factors[-1] % 3 == 0 for access in accesses):
        width *= 3  # so that vectors start where an element does

    def store(first: list[Any], count: int) -> None:
        expanded = {
            j: _expanded(flat[j], access, first, count, operands[j].dtype)
            for j, access in enumerate(accesses)
            if access.factors[-1] > 1
        }
        with emit.loop(count, "vectorized") as lane:
            at = [*first[:-1], first[-1] + lane]

            def load(j: int) -> tirx.Expr:
                return expanded[j][lane] if j in expanded else flat[j][accesses[j].index(at)]

            T.buffer_store(out, w.epilogue.evaluate([], load), at)

    grain = (*(1,) * (len(extents) - 1), width * params["vectors"])
    with boxes.parallel_boxes(extents, grain, params["tasks"]) as (starts, sizes):
        boxes.each_vector(starts, sizes, width, params["vectors"], store)
