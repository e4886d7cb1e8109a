"""Features of scheduled kernels from which their speed is predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log2, prod
from typing import Any

import numpy as np
import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule.arg_info import ArgInfo
from tvm.s_tir.meta_schedule.feature_extractor import PerStoreFeature
from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate
from tvm.s_tir.stmt import SBlockRealize

from tvm_ext.dtypes import itemsize
from tvm_ext.schedules.tuned import buffer_shapes
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.tune_space import tune_context

# MetaSchedule's features of a store begin with its numbers of floating-point operations.
_FLOAT_OPS = 8
# The innermost loops that are described one by one.
_INNER = 4
# TensorIR's kinds of loops: serial, parallel, vectorized, unrolled.
_KINDS = 4
# TensorIR's kind of an iterator that is reduced over.
_REDUCTION = 2


def features(mods: Sequence[tvm.IRModule], cpu: CpuTarget) -> np.ndarray:
    """One row of features a scheduled module.

    MetaSchedule's features of the store with the most arithmetic, and the largest of each over
    all stores: operations, annotated loops, reuse of buffers, arithmetic intensity. Then ours of
    the block with the most iterations: its shape, loops and tiles.

    Parameters
    ----------
    mods : sequence of IRModule
        With one function, `main`.
    cpu : CpuTarget

    Returns
    -------
    array of float32, shape (len(mods), features)
    """
    if not mods:
        return np.zeros((0, 0), "float32")
    candidates = [
        MeasureCandidate(Schedule(mod), ArgInfo.from_prim_func(mod["main"])) for mod in mods
    ]
    # The target and the number of threads are all that is read of it.
    context = tune_context(mods[0]["main"], cpu)
    stores = [found.numpy() for found in PerStoreFeature().extract_from(context, candidates)]
    return np.stack(
        [np.concatenate([_stores(x), _loops(m["main"])]) for x, m in zip(stores, mods, strict=True)]
    ).astype("float32")


def _stores(rows: np.ndarray) -> np.ndarray:
    heaviest = rows[rows[:, :_FLOAT_OPS].sum(axis=1).argmax()]
    return np.concatenate([heaviest, rows.max(axis=0)])


def _loops(function: tirx.PrimFunc) -> list[float]:
    nests = list(_nests(function.body, []))
    block, nest = max(nests, key=lambda found: prod(extent for extent, _ in found[1]))
    work = prod(int(i.dom.extent) for i in block.iter_vars)
    spatial = prod(int(i.dom.extent) for i in block.iter_vars if int(i.iter_type) != _REDUCTION)
    moved = sum(prod(shape) * itemsize(dtype) for shape, dtype in buffer_shapes(function))
    # Iterations of the loops of each kind together.
    kinds = [prod(extent for extent, kind in nest if kind == k) for k in range(_KINDS)]
    tail = ([(1, 0)] * _INNER + nest)[-_INNER:]
    return [
        log2(work), log2(spatial), log2(work / spatial), log2(moved), log2(work / moved),
        len(nests), len(nest),
        *(log2(extent) for extent in kinds),
        *(log2(extent) for extent, _ in tail),
        *(float(kind) for _, kind in tail),
    ]  # fmt: skip


def _nests(stmt: Any, around: list[tuple[int, int]]) -> Iterator[tuple[Any, list[tuple[int, int]]]]:
    """Each block but the root, with extent and kind of the loops around it, the outer first.

    Loops that run once are left out. `Schedule` tells the same, but ten times slower.
    """
    if isinstance(stmt, tirx.For):
        extent = int(stmt.extent)
        yield from _nests(stmt.body, [*around, (extent, int(stmt.kind))] if extent > 1 else around)
    elif isinstance(stmt, tirx.SeqStmt):
        for part in stmt.seq:
            yield from _nests(part, around)
    elif isinstance(stmt, SBlockRealize):
        if stmt.block.name_hint != "root":
            yield stmt.block, around
        yield from _nests(stmt.block.body, around)
