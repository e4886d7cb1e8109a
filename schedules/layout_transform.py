"""Conversion between the model's own layout and channel-blocked ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, register
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.target import CpuTarget


@dataclass(frozen=True)
class LayoutWorkload:
    """A tensor of logical `shape` from one channel block to another; 0 is plain."""

    shape: tuple[int, ...]
    block_in: int
    block_out: int
    dtype: str = "float32"

    @property
    def out_shape(self) -> tuple[int, ...]:
        return self.shape

    @property
    def flops(self) -> int:
        return 0

    @property
    def bytes(self) -> int:
        return 8 * prod(self.shape)


@register
class LayoutTransform(Algorithm[LayoutWorkload]):
    """One pass over the tensor."""

    name: ClassVar[str] = "layout_transform"
    workload_type: ClassVar[type] = LayoutWorkload

    def supports(self, workload: LayoutWorkload, target: CpuTarget) -> Support:
        return YES

    def space(self, workload: LayoutWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {}

    def default(self, workload: LayoutWorkload, target: CpuTarget) -> dict[str, Any]:
        return {}

    def cost(self, workload: LayoutWorkload, params: Params, target: CpuTarget) -> float:
        return workload.bytes / target.memory_bandwidth

    def kernel(
        self, workload: LayoutWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        w = workload
        n, c, *spatial = w.shape
        size = prod(spatial)

        def body() -> None:
            data = emit.argument("data", stored_shape(w.shape, w.block_in), w.dtype)
            out = emit.argument("out", stored_shape(w.shape, w.block_out), w.dtype)
            lanes = w.block_out or w.block_in
            blocks = -(-c // lanes)
            if w.block_out:
                src = emit.view(data, (n, c, size), w.dtype)
                dst = emit.view(out, (n, blocks, size, lanes), w.dtype)
            else:
                src = emit.view(data, (n, blocks, size, lanes), w.dtype)
                dst = emit.view(out, (n, c, size), w.dtype)
            with emit.parallel_tasks(n, blocks) as (b, k):
                with T.serial(0, size) as p, T.serial(0, lanes) as i:
                    inside = k * lanes + i < c
                    if w.block_out:
                        value = src[b, tirx.min(k * lanes + i, c - 1), p]
                        zero = tirx.const(0, w.dtype)
                        T.buffer_store(dst, tirx.if_then_else(inside, value, zero), [b, k, p, i])
                    else:
                        with T.If(inside), T.Then():
                            T.buffer_store(dst, src[b, k, p, i], [b, k * lanes + i, p])

        return emit.build(body)
