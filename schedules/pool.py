"""Max and average pooling: down the rows into a line buffer, then along the line.

Both are separable. For one row of outputs the taps of the outer dimensions are reduced first, into
a buffer of one padded input row that stays in L1; then the taps of the last dimension are reduced
from there. A kernel of k x k costs about 2k operations an output instead of k * k, and since the
buffer holds the padding, no element is tested against the borders.

A pool over the whole input is a plain reduction over its positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.pool_global import combine, emit_global, identity
from tvm_ext.schedules.window import Axis, unflatten
from tvm_ext.schedules.workload import PoolWorkload
from tvm_ext.target import CpuTarget

_VECTORS = (1, 2, 3, 4, 6, 8)
# A longer line of taps is a loop; unrolling it would only fill the instruction cache.
_UNROLL_TAPS = 8
# What a core streams in about the time that a parallel loop takes to start.
_PARALLEL_BYTES = 64 << 10


@register
class Pool(Algorithm[PoolWorkload]):
    """Separable pooling, vectorised over channel lanes or, in the plain layout, over columns.

    Parameters of the plan: `vectors` accumulated in registers at a time; `rows` of outputs in a
    task; `parallel`, whether threads share the tasks.
    """

    name: ClassVar[str] = "pool"
    workload_type: ClassVar[type] = PoolWorkload

    def supports(self, workload: PoolWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.kind not in ("max", "avg"):
            return refuse(f"pool kind {w.kind!r}; only max and avg")
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if not 3 <= len(w.shape) <= 5:
            return refuse(f"rank {len(w.shape)}; only 3 to 5")
        return YES

    def layouts(self, workload: PoolWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes), (0, 0))

    def space(self, workload: PoolWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {
            "vectors": _VECTORS,
            "rows": tuple(range(1, prod(workload.out_shape[2:-1]) + 1)),
            "parallel": (False, True),
        }

    def default(self, workload: PoolWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        rows = prod(w.out_shape[2:-1])
        parallel = w.bytes > _PARALLEL_BYTES and target.cores > 1
        planes = w.shape[0] * -(-w.shape[1] // target.lanes)
        pieces = 1
        if parallel and planes % target.cores and planes < 4 * target.cores:
            pieces = min(rows, -(-4 * target.cores // planes))
        return {"vectors": 4, "rows": -(-rows // pieces), "parallel": parallel}

    def cost(self, workload: PoolWorkload, params: Params, target: CpuTarget) -> float:
        w = workload
        cores = target.cores if params["parallel"] else 1
        taps = (
            prod(w.kernel) if _is_global(w) else w.kernel[-1] + prod(w.kernel[:-1]) * w.strides[-1]
        )
        # A maximum that keeps NaN is three instructions; about two vectors of them a cycle.
        work = prod(w.out_shape) * (taps * (3 if w.kind == "max" else 1) + w.epilogue.flops)
        memory = w.bytes / target.bandwidth(cores)
        return max(work / (0.5 * target.fma_peak * cores), memory) + costs.fork(cores)

    def kernel(
        self, workload: PoolWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        emitter = emit_global if _is_global(workload) else _emit
        return emit.build(lambda: emitter(workload, params, target, layout[0]))


def _is_global(w: PoolWorkload) -> bool:
    """Whether one window covers the input exactly."""
    padded = any(w.pad_before) or any(w.pad_after)
    return w.kernel == w.shape[2:] and prod(w.out_shape[2:]) == 1 and not padded


def _axes(w: PoolWorkload, padded: bool = False) -> list[Axis]:
    """The spatial dimensions; with `padded` the padding counts as input."""
    return [
        Axis(n + before + after if padded else n, out, k, s, d, 0 if padded else before)
        for n, before, after, out, k, s, d in zip(
            w.shape[2:], w.pad_before, w.pad_after, w.out_shape[2:], w.kernel, w.strides,
            w.dilation, strict=True,
        )
    ]  # fmt: skip


def _emit(w: PoolWorkload, params: Params, target: CpuTarget, block: int) -> None:
    """Declare the arguments and emit the loops over tasks and rows."""
    v, axes = target.lanes, _axes(w)
    outer, width = w.out_shape[2:-1], w.out_shape[-1]
    planes = -(-w.shape[1] // v) if block else w.shape[1]
    data = emit.argument("data", stored_shape(w.shape, block))
    operands = declare_operands(w.epilogue, block)
    out = emit.argument("out", stored_shape(w.out_shape, block))
    rows, unit = prod(outer), v if block else 1
    data = emit.view(data, (w.shape[0], planes, *w.shape[2:-1], w.shape[-1] * unit))

    s, d, k, before = w.strides[-1], w.dilation[-1], w.kernel[-1], w.pad_before[-1]
    line = (width - 1) * s + d * (k - 1) + 1
    inside = min(w.shape[-1], line - before)
    count = params["rows"]
    tasks = -(-rows // count)
    with emit.tasks(params["parallel"], w.shape[0], planes, tasks) as (n, plane, task):
        buffer = emit.workspace((line * unit,))
        with emit.loop(before * unit) as i:
            T.buffer_store(buffer, identity(w), [i])
        with emit.loop((line - before - inside) * unit) as i:
            T.buffer_store(buffer, identity(w), [(before + inside) * unit + i])
        counted = _axes(w, w.count_include_pad)
        varies = w.kind == "avg" and counted[-1].cut
        inverse = _inverse_counts(counted[-1]) if varies else None
        first = cuts.panel_start(task, count, rows)
        with emit.loop(count) as i:
            at = unflatten(first + i, outer)
            taps = [axis.taps(x) for axis, x in zip(axes, at, strict=False)]
            # What a window's sum is multiplied by, as far as it doesn't depend on the column.
            scale: Any = tirx.const(1.0 if varies else 1.0 / k, "float32")
            for axis, x in zip(counted, at, strict=False):
                scale = scale * _inverse(axis, x)
            scale = emit.hold(scale) if w.kind == "avg" else None

            def source(index: Sequence[Any], x: Any) -> Any:
                where = [
                    axes[a].source(p, taps[a][0] + t)
                    for a, (p, t) in enumerate(zip(at, index, strict=True))
                ]
                return data[(n, plane, *where, x)]

            def down(start: Any, vectors: int, lanes: int) -> None:
                acc = emit.RegisterTile(1, vectors, lanes)
                acc.fill(lambda r, c, lane: identity(w))
                with emit.nest([extent for _, extent in taps]) as index:
                    acc.fill(
                        lambda r, c, lane: combine(
                            w, acc.get(r, c, lane), source(index, start + c * lanes + lane)
                        )
                    )
                acc.each(
                    lambda r, c, lane: T.buffer_store(
                        buffer, acc.get(r, c, lane), [before * unit + start + c * lanes + lane]
                    )
                )

            def along(start: Any, vectors: int, lanes: int) -> None:
                acc = emit.RegisterTile(1, vectors, lanes)
                acc.fill(lambda r, c, lane: identity(w))
                with emit.loop(k, "unroll" if k <= _UNROLL_TAPS else "serial") as t:

                    def tap(r: Any, c: Any, lane: Any) -> tirx.Expr:
                        if block:
                            at = ((start // v + c) * s + t * d) * v + lane
                        else:
                            at = (start + c * lanes + lane) * s + t * d
                        return combine(w, acc.get(r, c, lane), buffer[at])

                    acc.fill(tap)

                def store(r: Any, c: Any, lane: Any) -> None:
                    column = start // v + c if block else start + c * lanes + lane
                    index = [n, plane, *at, column] + ([lane] if block else [])
                    value = acc.get(r, c, lane)
                    if w.kind == "avg":
                        value = value * scale
                        value = value * inverse[column] if varies else value
                    value = apply_epilogue(w.epilogue, operands, block, index, [value])
                    T.buffer_store(out, value, index)

                acc.each(store)

            _cover(inside * unit, v, params["vectors"], down)
            _cover(width * unit, v, params["vectors"], along)


def _cover(extent: int, lanes: int, vectors: int, body: Any) -> None:
    """Call `body(start, vectors, lanes)` in loops over [0, extent); the tail is one vector."""
    whole = extent // lanes
    start = 0
    for count, size in cuts.split_extent(whole, vectors) if whole else ():
        with emit.loop(count) as t:
            body(start + t * (size * lanes), size, lanes)
        start += count * size * lanes
    if extent > start:
        if extent >= lanes:
            # Overlap the last vector with its neighbour: the same results are computed twice.
            body(extent - lanes, 1, lanes)
        else:
            with emit.loop(extent) as i:
                body(i, 1, 1)


def _inverse(axis: Axis, position: Any) -> Any:
    """1 / the elements that an average has along one axis."""
    if not axis.cut:
        return tirx.const(1.0 / axis.kernel, "float32")
    taps = tirx.max(axis.taps(position)[1], 1)
    return tirx.const(1.0, "float32") / taps.astype("float32")


def _inverse_counts(line: Axis) -> Any:
    """`_inverse` of every output column, in a buffer."""
    buffer = emit.workspace((line.out,))
    with emit.loop(line.out) as x:
        T.buffer_store(buffer, _inverse(line, x), [x])
    return buffer
