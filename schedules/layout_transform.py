"""Conversion between the model's own layout and channel-blocked ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.block_transpose import Side, block_to_planes, each_block, planes_to_block
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
        return 2 * np.dtype(self.dtype).itemsize * prod(self.shape)


@register
class LayoutTransform(Algorithm[LayoutWorkload]):
    """One pass over the tensor.

    Parameter of the plan: `parallel`, whether threads share the channel blocks.
    """

    name: ClassVar[str] = "layout_transform"
    workload_type: ClassVar[type] = LayoutWorkload

    def supports(self, workload: LayoutWorkload, target: CpuTarget) -> Support:
        w = workload
        if (w.block_in == 0) == (w.block_out == 0):
            return refuse(f"blocks {w.block_in} -> {w.block_out}; exactly one must be 0 (plain)")
        return YES

    def space(self, workload: LayoutWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {"parallel": (False, True)}

    def default(self, workload: LayoutWorkload, target: CpuTarget) -> dict[str, Any]:
        return {"parallel": costs.copies_in_parallel(workload.bytes, target)}

    def cost(self, workload: LayoutWorkload, params: Params, target: CpuTarget) -> float:
        return costs.copy_cost(workload.bytes, params["parallel"], target)

    def kernel(
        self, workload: LayoutWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params))


def _emit(w: LayoutWorkload, params: Params) -> None:
    """Declare the arguments and emit the loop over channel blocks."""
    n, channels, *spatial = w.shape
    size, lanes = prod(spatial), w.block_out or w.block_in
    blocks, rest = -(-channels // lanes), channels % lanes
    data = emit.argument("data", stored_shape(w.shape, w.block_in), w.dtype)
    out = emit.argument("out", stored_shape(w.shape, w.block_out), w.dtype)
    plain, blocked = (data, out) if w.block_out else (out, data)
    plain = emit.view(plain, (n, channels, size), w.dtype)
    blocked = emit.view(blocked, (n, blocks, size, lanes), w.dtype)

    def block(n: Any, k: Any, rows: int) -> None:
        one = Side(plain, lambda i, p: [n, k * lanes + i, p])
        other = Side(blocked, lambda i, p: [n, k, p, i])
        if w.block_out:
            planes_to_block(one, other, size, lanes, rows, w.dtype)
        else:
            block_to_planes(other, one, size, lanes, rows, w.dtype)

    with emit.tasks(params["parallel"], n, blocks) as (b, k):
        each_block(blocks, rest, lanes, k, lambda k, rows: block(b, k, rows))
