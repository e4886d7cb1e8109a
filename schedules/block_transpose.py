"""One channel block between two layouts: planes of positions, and vectors of channels.

Lanes x lanes elements are transposed in registers, so that both sides are read and written in
whole vectors along their contiguous dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.lane_transpose import store_vector, transpose, vector_at
from tvm_ext.target import CpuTarget


@dataclass(frozen=True)
class Side:
    """A buffer, and where in it a channel of the block and a position are, in this order."""

    buffer: Any
    at: Callable[[Any, Any], list[Any]]


def planes_to_block(
    planes: Side, block: Side, size: int, lanes: int, rows: int, dtype: str = "float32"
) -> None:
    """Copy `size` positions of the first `rows` channels of a block; the other lanes are zeros."""

    def tile(start: Any, _: int) -> None:
        zero = tirx.Broadcast(tirx.const(0, dtype), lanes)
        transpose(
            lanes,
            dtype,
            lambda i: vector_at(planes.buffer, planes.at(i, start), lanes) if i < rows else zero,
            lambda i, x: store_vector(block.buffer, x, block.at(0, start + i), lanes),
        )

    if _in_registers(size, lanes, dtype):
        emit.cover(size, lanes, tile)
        return
    with emit.loop(size) as p:
        with emit.loop(rows) as i:
            T.buffer_store(block.buffer, planes.buffer[tuple(planes.at(i, p))], block.at(i, p))
        if rows < lanes:
            with emit.loop(lanes - rows) as i:
                T.buffer_store(block.buffer, tirx.const(0, dtype), block.at(rows + i, p))


def block_to_planes(
    block: Side,
    planes: Side,
    size: int,
    lanes: int,
    rows: int,
    dtype: str = "float32",
    finish: Callable[[Any, tirx.Expr], tirx.Expr] | None = None,
) -> None:
    """Copy `size` positions of the first `rows` channels of a block.

    `finish` makes what is stored from a channel and an element.
    """

    def store(i: int, start: Any, x: tirx.Expr) -> None:
        if finish is None:
            store_vector(planes.buffer, x, planes.at(i, start), lanes)
            return
        vector = T.alloc_buffer((lanes,), dtype, scope="global")
        store_vector(vector, x, [0], lanes)
        with emit.loop(lanes, "vectorized") as lane:
            T.buffer_store(planes.buffer, finish(i, vector[lane]), planes.at(i, start + lane))

    def tile(start: Any, _: int) -> None:
        transpose(
            lanes,
            dtype,
            lambda p: vector_at(block.buffer, block.at(0, start + p), lanes),
            lambda i, x: store(i, start, x) if i < rows else None,
        )

    if _in_registers(size, lanes, dtype):
        emit.cover(size, lanes, tile)
        return
    with emit.loop(size) as p, emit.loop(rows) as i:
        value = block.buffer[tuple(block.at(i, p))]
        T.buffer_store(planes.buffer, finish(i, value) if finish else value, planes.at(i, p))


def each_block(
    blocks: int, rest: int, lanes: int, k: Any, body: Callable[[Any, int], None]
) -> None:
    """Call `body(block, its channels)` for block `k`; the last one holds `rest`, 0 for all."""
    if not rest:
        body(k, lanes)
    elif blocks == 1:
        body(0, rest)
    else:
        with T.If(k < blocks - 1):
            with T.Then():
                body(k, lanes)
            with T.Else():
                body(blocks - 1, rest)


def transposing_seconds(elements: int, target: CpuTarget) -> float:
    """Seconds in which a core transposes that many elements: its shuffles, one a cycle."""
    cycles = elements * log2(target.lanes) / target.lanes
    # Two units multiply and add a vector in each cycle.
    return cycles * 4 * target.lanes / target.fma_peak


def _in_registers(size: int, lanes: int, dtype: str) -> bool:
    return lanes in (4, 8, 16) and size >= lanes and np.dtype(dtype).itemsize == 4
