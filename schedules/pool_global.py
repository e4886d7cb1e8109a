"""Pooling over the whole input: a reduction of all positions with independent accumulators."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.scalar_math import maximum
from tvm_ext.schedules.workload import PoolWorkload
from tvm_ext.target import CpuTarget

# Of a sample, a channel (block), a lane of it and the result; called in a vectorised loop.
Store = Callable[[Any, Any, Any, tirx.Expr], None]


def combine(w: PoolWorkload, total: tirx.Expr, x: tirx.Expr) -> tirx.Expr:
    """A window's result so far with one more element; a NaN stays."""
    return total + x if w.kind == "avg" else maximum(x, total)


def identity(w: PoolWorkload) -> tirx.Expr:
    """What a window's result starts from."""
    return tirx.const(0.0 if w.kind == "avg" else float("-inf"), "float32")


def emit_global(w: PoolWorkload, params: Params, target: CpuTarget, block: int) -> None:
    """Declare the arguments and pool each channel (block)."""
    data = emit.argument("data", stored_shape(w.shape, block))
    operands = declare_operands(w.epilogue, block)
    out = emit.argument("out", stored_shape(w.out_shape, block))

    def store(n: Any, plane: Any, lane: Any, value: tirx.Expr) -> None:
        index = [n, plane, *(0,) * (len(w.shape) - 2)] + ([lane] if block else [])
        T.buffer_store(out, apply_epilogue(w.epilogue, operands, block, index, [value]), index)

    pool_planes(w, params, target.lanes, block, data, store)


def pool_planes(
    w: PoolWorkload, params: Params, lanes: int, block: int, data: Any, store: Store
) -> None:
    """Reduce all positions of each channel (block) with independent accumulators.

    Parameters
    ----------
    params
        `vectors` accumulated in registers; `parallel`, whether threads share the channels.
    data
        The argument that is pooled, in blocks of `block` channels or, if that is 0, as it is.
    """
    positions = prod(w.shape[2:])
    planes = -(-w.shape[1] // block) if block else w.shape[1]
    extent = positions * block if block else positions
    flat = emit.view(data, (w.shape[0], planes, extent))
    v = lanes if extent >= lanes else 1
    vectors = min(params["vectors"], extent // v)
    step = vectors * v
    scale = tirx.const(1.0 / positions, "float32")
    with emit.tasks(params["parallel"], w.shape[0], planes) as (n, plane):
        acc = emit.RegisterTile(1, vectors, v)
        acc.fill(lambda r, c, lane: flat[n, plane, c * v + lane])
        with emit.loop(extent // step - 1) as i:
            acc.fill(
                lambda r, c, lane: combine(
                    w, acc.get(r, c, lane), flat[n, plane, (i + 1) * step + c * v + lane]
                )
            )
        total = emit.RegisterTile(1, 1, v)
        total.fill(lambda r, c, lane: acc.get(0, 0, lane))
        for c in range(1, vectors):
            total.fill(
                lambda r, _, lane, c=c: combine(w, total.get(0, 0, lane), acc.get(0, c, lane))
            )
        done = extent // step * step
        with emit.loop((extent - done) // v) as i:
            total.fill(
                lambda r, c, lane: combine(
                    w, total.get(0, 0, lane), flat[n, plane, done + i * v + lane]
                )
            )
        result = total
        if not block:
            result = emit.RegisterTile(1, 1, 1)
            result.fill(lambda r, c, lane: total.get(0, 0, 0))
            for j in range(1, v):
                result.fill(
                    lambda r, c, lane, j=j: combine(w, result.get(0, 0, 0), total.get(0, 0, j))
                )
            done = extent // v * v
            with emit.loop(extent - done) as i:
                result.fill(
                    lambda r, c, lane: combine(w, result.get(0, 0, 0), flat[n, plane, done + i])
                )

        def finish(r: Any, c: Any, lane: Any) -> None:
            value = result.get(0, 0, lane)
            store(n, plane, lane, value * scale if w.kind == "avg" else value)

        result.each(finish)
