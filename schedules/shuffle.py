"""Permutation of dimensions: channel shuffles, attention heads, matrix transposes.

Dimensions that stay neighbours are one to the kernel. If the innermost stays innermost, what moves
are contiguous runs, copied in vectors. Else the innermost dimensions of input and output span a
matrix that is transposed in registers, lanes x lanes at a time.
A map of channel blocks is read as it is where channels, cut in heads or anchors, become innermost.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.lane_transpose import store_vector, transpose, vector_at
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.workload import Shape, TransposeWorkload
from tvm_ext.target import CpuTarget


@register
class Shuffle(Algorithm[TransposeWorkload]):
    """One pass over the tensor in the order of the output.

    Parameter of the plan: `parallel`, whether threads share the outer dimensions.
    """

    name: ClassVar[str] = "shuffle"
    workload_type: ClassVar[type] = TransposeWorkload

    def supports(self, workload: TransposeWorkload, target: CpuTarget) -> Support:
        w = workload
        if sorted(w.axes) != list(range(len(w.shape))):
            return refuse(f"axes {w.axes} don't permute the {len(w.shape)} dimensions")
        if prod(w.shape) == 0:
            return refuse(f"shape {w.shape} has no elements")
        return YES

    def layouts(
        self, workload: TransposeWorkload, target: CpuTarget
    ) -> tuple[tuple[int, int], ...]:
        return ((0, 0), (target.lanes, 0)) if reads_parts(workload) else ((0, 0),)

    def space(self, workload: TransposeWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {"parallel": (False, True)}

    def default(self, workload: TransposeWorkload, target: CpuTarget) -> dict[str, Any]:
        return {"parallel": costs.copies_in_parallel(workload.bytes, target)}

    def cost(self, workload: TransposeWorkload, params: Params, target: CpuTarget) -> float:
        return costs.copy_cost(workload.bytes, params["parallel"], target)

    def kernel(
        self,
        workload: TransposeWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        if layout[0]:
            return emit.build(lambda: _emit_blocked(workload, params, layout[0]))
        return emit.build(lambda: _emit(workload, params, target))


def reads_parts(w: TransposeWorkload) -> bool:
    """Whether the source is a feature map, whose channels are cut in parts, the last innermost."""
    if not 3 <= len(w.source) <= 5 or w.dtype != "float32":
        return False
    batch, _, *spatial = w.source
    first = len(w.shape) - len(spatial)
    cut = first >= 2 and w.shape[0] == batch and w.shape[first:] == tuple(spatial)
    return cut and w.axes[-1] == first - 1


def merge(shape: Shape, axes: Shape) -> tuple[Shape, Shape]:
    """The same permutation with fewest dimensions: neighbours that stay together are merged.

    Returns
    -------
    (shape, axes)
        Without dimensions of extent 1; at least one dimension.
    """
    groups: list[list[int]] = []
    kept = [axis for axis in range(len(shape)) if shape[axis] != 1]
    for axis in (a for a in axes if shape[a] != 1):
        rank = kept.index(axis)
        if groups and groups[-1][-1] == rank - 1:
            groups[-1].append(rank)
        else:
            groups.append([rank])
    if not groups:
        return (1,), (0,)
    order = sorted(range(len(groups)), key=lambda g: groups[g])
    extents = [prod(shape[kept[rank]] for rank in groups[g]) for g in order]
    return tuple(extents), tuple(order.index(g) for g in range(len(groups)))


def _emit(w: TransposeWorkload, params: Params, target: CpuTarget) -> None:
    """Declare the arguments and emit the loops over the output's dimensions."""
    shape, axes = merge(w.shape, w.axes)
    extents = tuple(shape[axis] for axis in axes)
    data = emit.argument("data", w.source or w.shape, w.dtype)
    out = emit.argument("out", w.out_shape, w.dtype)
    data, out = emit.view(data, shape, w.dtype), emit.view(out, extents, w.dtype)
    rank, size = len(shape), np.dtype(w.dtype).itemsize
    # The output dimension that is innermost in the input.
    inner = axes.index(rank - 1)

    def source(index: list[Any]) -> list[Any]:
        at: list[Any] = [0] * rank
        for position, axis in zip(index, axes, strict=True):
            at[axis] = position
        return at

    if inner == rank - 1:
        lanes = max(1, 4 * target.lanes // size)

        def run(start: Any, width: int, index: list[Any]) -> None:
            with emit.loop(width, "vectorized") as lane:
                at = [*index, start + lane]
                T.buffer_store(out, data[tuple(source(at))], at)

        with _outer(params, extents[:-1]) as index:
            emit.cover(extents[-1], lanes, lambda s, width: run(s, width, list(index)))
        return

    lanes = target.lanes
    if size == 4 and min(extents[inner], extents[-1]) >= lanes:

        def tile(index: list[Any], row: Any, column: Any) -> None:
            def at(i: Any, j: Any) -> list[Any]:
                return [*index[:inner], row + i, *index[inner + 1 :], column + j]

            transpose(
                lanes,
                w.dtype,
                lambda j: vector_at(data, source(at(0, j)), lanes),
                lambda i, x: store_vector(out, x, at(i, 0), lanes),
            )

        rows = -(-extents[inner] // lanes)
        tiled = [rows if d == inner else n for d, n in enumerate(extents[:-1])]
        with _outer(params, tiled) as outer:
            row = cuts.panel_start(outer[inner], lanes, extents[inner])
            emit.cover(extents[-1], lanes, lambda s, _: tile(list(outer), row, s))
        return

    with _outer(params, extents[:-1]) as index, emit.loop(extents[-1]) as last:
        T.buffer_store(out, data[tuple(source([*index, last]))], [*index, last])


def _emit_blocked(w: TransposeWorkload, params: Params, block: int) -> None:
    """Runs of a part of the channels: whole vectors, or elements where a part ends in a block."""
    stored = stored_shape(w.source, block)
    data = emit.argument("data", stored, w.dtype)
    out = emit.argument("out", w.out_shape, w.dtype)
    first = len(w.shape) - len(w.source) + 2
    parts, inner = w.shape[1:first], w.shape[first - 1]

    def source(index: list[Any]) -> list[Any]:
        """The indices in the dimensions of `shape`."""
        at: list[Any] = [0] * len(w.shape)
        for position, axis in zip(index, w.axes, strict=True):
            at[axis] = position
        return at

    def element(index: list[Any]) -> tirx.Expr:
        n, *at = source(index)
        channel = emit.flat_index(at[: first - 1], parts)
        return data[(n, channel // block, *at[first - 1 :], channel % block)]

    with _outer(params, w.out_shape[:-1]) as outer:
        if inner % block:
            with emit.loop(inner) as last:
                T.buffer_store(out, element([*outer, last]), [*outer, last])
            return
        n, *at = source([*outer, 0])
        start = emit.flat_index(at[: first - 1], parts) // block
        with emit.loop(inner // block) as k, emit.loop(block, "vectorized") as lane:
            value = data[(n, start + k, *at[first - 1 :], lane)]
            T.buffer_store(out, value, [*outer, k * block + lane])


def _outer(params: Params, extents: Any) -> Any:
    return emit.tasks(params["parallel"], *extents)
