"""The default TensorIR schedule: any PrimFunc parallel and vectorised, never the naive loop.

In order: inline what is cheap to recompute, then for every remaining block split its independent
loops into a parallel outer and a vectorised inner part. It doesn't tile for reuse; layers for which
that matters have an algorithm of their own.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from tvm_ext.target import CpuTarget

# Iterations below which starting other threads costs more than it saves.
_PARALLEL_ITERATIONS = 16_384


def schedule_prim_func(func: tirx.PrimFunc, target: CpuTarget) -> tirx.PrimFunc:
    """Schedule one PrimFunc that consists of TE-style blocks; others come back as they are.

    Parameters
    ----------
    func : PrimFunc
        As `relax.transform.LegalizeOps` makes it.
    target : CpuTarget
        For the vector width and the number of cores.
    """
    sch = Schedule(tvm.IRModule({"main": func}))
    try:
        root = sch.get_sblock("root")
    except tvm.s_tir.ScheduleError:
        return func
    for block in sch.get_child_blocks(root):
        _try(sch, "compute_inline", block)
    for block in sch.get_child_blocks(root):
        _schedule_block(sch, block, target)
    return sch.mod["main"]


def _try(sch: Schedule, primitive: str, *args: Any) -> bool:
    """Apply a primitive; False where its own legality check refuses."""
    try:
        getattr(sch, primitive)(*args)
    except tvm.s_tir.ScheduleError:
        return False
    return True


def _schedule_block(sch: Schedule, block: Any, target: CpuTarget) -> None:
    kinds = [int(iv.iter_type) for iv in sch.get(block).iter_vars]
    loops = sch.get_loops(block)
    if len(loops) != len(kinds):
        return
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == 0]
    reduction = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == 2]
    if len(spatial) + len(reduction) != len(loops) or not spatial:
        return
    extents = [_extent(sch, loop) for loop in spatial]
    if None in extents:
        return
    inner = spatial[-1]
    vectorisable = (extents[-1] or 0) % target.lanes == 0
    sch.reorder(*spatial[:-1], *reduction, inner)
    total = 1
    for extent in extents:
        total *= extent or 1
    work = total
    for loop in reduction:
        work *= _extent(sch, loop) or 1
    if vectorisable:
        outer, lanes = sch.split(inner, [None, target.lanes])
        sch.reorder(outer, *reduction, lanes)
        if _try(sch, "vectorize", lanes):
            spatial = [*spatial[:-1], outer]
    elif not reduction:
        # A tail that doesn't fill a vector runs under a predicate; LLVM splits it off.
        spatial = list(spatial)
    if work >= _PARALLEL_ITERATIONS and target.cores > 1:
        fused = spatial[0]
        for loop in spatial[1:-1] if len(spatial) > 1 else []:
            fused = sch.fuse(fused, loop)
        _try(sch, "parallel", fused)
    if reduction:
        _try(sch, "decompose_reduction", block, reduction[0])


def _extent(sch: Schedule, loop: Any) -> int | None:
    extent = sch.get(loop).extent
    return int(extent) if isinstance(extent, (int, tirx.IntImm)) else None
