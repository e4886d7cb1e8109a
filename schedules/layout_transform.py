"""Conversion between the model's own layout and channel-blocked ones.

Lanes x lanes elements are transposed in registers, so that both sides are read and written in
whole vectors along their contiguous dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.lane_transpose import store_vector, transpose, vector_at
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
    """Declare the arguments and emit the loops over channel blocks and tiles of positions."""
    n, channels, *spatial = w.shape
    size, lanes = prod(spatial), w.block_out or w.block_in
    blocks, rest = -(-channels // lanes), channels % lanes
    data = emit.argument("data", stored_shape(w.shape, w.block_in), w.dtype)
    out = emit.argument("out", stored_shape(w.shape, w.block_out), w.dtype)
    plain, blocked = (data, out) if w.block_out else (out, data)
    plain = emit.view(plain, (n, channels, size), w.dtype)
    blocked = emit.view(blocked, (n, blocks, size, lanes), w.dtype)
    in_registers = lanes in (4, 8, 16) and size >= lanes and np.dtype(w.dtype).itemsize == 4

    def tile(b: Any, k: Any, start: Any, rows: int) -> None:
        """`lanes` positions of the first `rows` channels of a block."""
        zero = tirx.Broadcast(tirx.const(0, w.dtype), lanes)

        def channel(i: int) -> list[Any]:
            return [b, k * lanes + i, start]

        def position(i: int) -> list[Any]:
            return [b, k, start + i, 0]

        if w.block_out:
            transpose(
                lanes,
                w.dtype,
                lambda i: vector_at(plain, channel(i), lanes) if i < rows else zero,
                lambda i, x: store_vector(blocked, x, position(i), lanes),
            )
        else:

            def store(i: int, x: Any) -> None:
                if i < rows:
                    store_vector(plain, x, channel(i), lanes)

            transpose(lanes, w.dtype, lambda i: vector_at(blocked, position(i), lanes), store)

    def elements(b: Any, k: Any, rows: int) -> None:
        """A block without vectors: few positions, or elements of another size."""
        with emit.loop(size) as p:
            with emit.loop(rows) as i:
                if w.block_out:
                    T.buffer_store(blocked, plain[b, k * lanes + i, p], [b, k, p, i])
                else:
                    T.buffer_store(plain, blocked[b, k, p, i], [b, k * lanes + i, p])
            if w.block_out and rows < lanes:
                with emit.loop(lanes - rows) as i:
                    T.buffer_store(blocked, tirx.const(0, w.dtype), [b, k, p, rows + i])

    def block(b: Any, k: Any, rows: int) -> None:
        if in_registers:
            emit.cover(size, lanes, lambda start, _: tile(b, k, start, rows))
        else:
            elements(b, k, rows)

    with emit.tasks(params["parallel"], n, blocks) as (b, k):
        if not rest:
            block(b, k, lanes)
        elif blocks == 1:
            block(b, 0, rest)
        else:
            with T.If(k < blocks - 1):
                with T.Then():
                    block(b, k, lanes)
                with T.Else():
                    block(b, blocks - 1, rest)
