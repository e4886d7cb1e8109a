"""Pools of 8-bit integers on channel-blocked data: a vector of channels for each position."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, emit, vectors
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, register
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.quantized_workload import QuantizedPoolWorkload
from tvm_ext.schedules.requantize import requantized
from tvm_ext.target import CpuTarget

# Taps of a window that are unrolled; longer windows are loops.
_UNROLLED = 9
# A vector of results takes a core about so many cycles a tap, with its addresses.
_CYCLES = 4
_HZ = 3e9


@register
class Int8Pool(Algorithm[QuantizedPoolWorkload]):
    """Max pools and global averages.

    A window over the border reads the nearest row and column inside instead of padding: they are
    in the window, too, so that its largest value stays what it is.

    Parameter of the plan: `parallel`, whether threads share the rows of channel blocks.
    """

    name: ClassVar[str] = "int8_pool"
    workload_type: ClassVar[type] = QuantizedPoolWorkload

    def supports(self, workload: QuantizedPoolWorkload, target: CpuTarget) -> Support:
        return YES

    def layouts(
        self, workload: QuantizedPoolWorkload, target: CpuTarget
    ) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes),)

    def space(
        self, workload: QuantizedPoolWorkload, target: CpuTarget
    ) -> dict[str, tuple[Any, ...]]:
        return {"parallel": (False, True)}

    def default(self, workload: QuantizedPoolWorkload, target: CpuTarget) -> dict[str, Any]:
        return {"parallel": costs.copies_in_parallel(workload.bytes, target)}

    def cost(self, workload: QuantizedPoolWorkload, params: Params, target: CpuTarget) -> float:
        cores = target.cores if params["parallel"] else 1
        compute = workload.flops / target.lanes * _CYCLES / _HZ / cores
        return max(compute, workload.bytes / target.bandwidth(cores)) + costs.fork(cores)

    def kernel(
        self,
        workload: QuantizedPoolWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        body = _emit_max if workload.kind == "max" else _emit_average
        return emit.build(lambda: body(workload, params["parallel"], target.lanes))

    def tolerance(self, workload: QuantizedPoolWorkload, params: Params) -> float:
        return 0.0


def _emit_max(w: QuantizedPoolWorkload, parallel: bool, v: int) -> None:
    data = emit.argument("data", stored_shape(w.shape, v), w.dtype)
    out = emit.argument("out", stored_shape(w.out_shape, v), w.dtype)
    n, blocks, rows, columns, _ = stored_shape(w.out_shape, v)
    kind = "unroll" if prod(w.kernel) <= _UNROLLED else "serial"

    def inside(at: Any, axis: int, tap: Any) -> Any:
        where = at * w.strides[axis] + tap - w.pad_before[axis]
        if w.pad_before[axis]:
            where = tirx.max(where, 0)
        last = w.shape[2 + axis] - 1
        reach = (w.out_shape[2 + axis] - 1) * w.strides[axis] + w.kernel[axis] - 1
        return tirx.min(where, last) if reach - w.pad_before[axis] > last else where

    with emit.tasks(parallel, n, blocks, rows) as (b, k, y), emit.loop(columns) as x:
        largest = T.alloc_buffer((v,), w.dtype, scope="global")
        lowest = tirx.const(0 if w.dtype == "uint8" else -128, w.dtype)
        vectors.store(largest, vectors.spread(lowest, v), [0], v)
        with emit.nest(w.kernel, kind) as (i, j):
            value = vectors.load(data, [b, k, inside(y, 0, i), inside(x, 1, j), 0], v)
            vectors.store(largest, tirx.max(vectors.load(largest, [0], v), value), [0], v)
        vectors.store(out, vectors.load(largest, [0], v), [b, k, y, x, 0], v)


def _emit_average(w: QuantizedPoolWorkload, parallel: bool, v: int) -> None:
    assert w.result is not None
    n, blocks, *_ = stored_shape(w.shape, v)
    positions = prod(w.kernel)
    data = emit.argument("data", stored_shape(w.shape, v), w.dtype)
    out = emit.argument("out", stored_shape(w.out_shape, v), w.dtype)
    flat = emit.view(data, (n, blocks, positions, v), w.dtype)
    zero = tirx.const(-positions * w.x_zero, "int32")
    with emit.tasks(parallel, n, blocks) as (b, k):
        total = T.alloc_buffer((v,), "int32", scope="global")
        vectors.store(total, vectors.spread(zero, v), [0], v)
        with emit.loop(positions) as p:
            value = vectors.cast(vectors.load(flat, [b, k, p, 0], v), "int32", v)
            vectors.store(total, vectors.load(total, [0], v) + value, [0], v)
        scale = vectors.constant(w.scale, "float32", v)
        value = requantized(vectors.load(total, [0], v), scale, w.result, w.dtype, v)
        vectors.store(out, value, [b, k, 0, 0, 0], v)
