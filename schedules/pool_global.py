"""Pooling over the whole input: a reduction of all positions with independent accumulators."""

from __future__ import annotations

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


def combine(w: PoolWorkload, total: tirx.Expr, x: tirx.Expr) -> tirx.Expr:
    """A window's result so far with one more element; a NaN stays."""
    return total + x if w.kind == "avg" else maximum(x, total)


def identity(w: PoolWorkload) -> tirx.Expr:
    """What a window's result starts from."""
    return tirx.const(0.0 if w.kind == "avg" else float("-inf"), "float32")


def emit_global(w: PoolWorkload, params: Params, target: CpuTarget, block: int) -> None:
    """Reduce all positions of each channel (block) with independent accumulators."""
    v, positions = target.lanes, prod(w.shape[2:])
    planes = -(-w.shape[1] // v) if block else w.shape[1]
    data = emit.argument("data", stored_shape(w.shape, block))
    operands = declare_operands(w.epilogue, block)
    out = emit.argument("out", stored_shape(w.out_shape, block))
    extent = positions * v if block else positions
    flat = emit.view(data, (w.shape[0], planes, extent))
    lanes = v if extent >= v else 1
    vectors = min(params["vectors"], extent // lanes)
    step = vectors * lanes
    scale = tirx.const(1.0 / positions, "float32")
    with emit.tasks(params["parallel"], w.shape[0], planes) as (n, plane):
        acc = emit.RegisterTile(1, vectors, lanes)
        acc.fill(lambda r, c, lane: flat[n, plane, c * lanes + lane])
        with emit.loop(extent // step - 1) as i:
            acc.fill(
                lambda r, c, lane: combine(
                    w, acc.get(r, c, lane), flat[n, plane, (i + 1) * step + c * lanes + lane]
                )
            )
        total = emit.RegisterTile(1, 1, lanes)
        total.fill(lambda r, c, lane: acc.get(0, 0, lane))
        for c in range(1, vectors):
            total.fill(
                lambda r, _, lane, c=c: combine(w, total.get(0, 0, lane), acc.get(0, c, lane))
            )
        done = extent // step * step
        with emit.loop((extent - done) // lanes) as i:
            total.fill(
                lambda r, c, lane: combine(
                    w, total.get(0, 0, lane), flat[n, plane, done + i * lanes + lane]
                )
            )
        result = total
        if not block:
            result = emit.RegisterTile(1, 1, 1)
            result.fill(lambda r, c, lane: total.get(0, 0, 0))
            for j in range(1, lanes):
                result.fill(
                    lambda r, c, lane, j=j: combine(w, result.get(0, 0, 0), total.get(0, 0, j))
                )
            done = extent // lanes * lanes
            with emit.loop(extent - done) as i:
                result.fill(
                    lambda r, c, lane: combine(w, result.get(0, 0, 0), flat[n, plane, done + i])
                )

        def store(r: Any, c: Any, lane: Any) -> None:
            index = [n, plane, *(0,) * (len(w.shape) - 2)] + ([lane] if block else [])
            value = result.get(0, 0, lane)
            if w.kind == "avg":
                value = value * scale
            value = apply_epilogue(w.epilogue, operands, block, index, [value])
            T.buffer_store(out, value, index)

        result.each(store)
