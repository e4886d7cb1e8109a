"""A producer computed as the input of the convolution behind it.

A task computes the rows that it multiplies into a copy of its own, padded, which is still in cache
when the multiply-adds read it. Before a 1x1 convolution nothing is computed twice by tasks that
share the rows among them; otherwise both compute the rows that both need, as tasks that share
output channels compute all of theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.base import YES, Support, refuse
from tvm_ext.schedules.conv_geometry import ConvGeometry, pointwise
from tvm_ext.schedules.conv_stage import Source, staged_extents
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.depthwise_rows import pack_filters
from tvm_ext.schedules.producer_rows import padded_row, producer_rows
from tvm_ext.schedules.resize import ResizeWorkload
from tvm_ext.schedules.row_copy import row_bounds
from tvm_ext.schedules.workload import PoolWorkload
from tvm_ext.target import CpuTarget


def supports_producer(w: ConvWorkload) -> Support:
    """Whether the rows of what is before a convolution can be computed one by one."""
    before = w.producer
    if before is None:
        return YES
    if w.groups > 1 or w.prologue or len(w.spatial) != 2:
        return refuse("a producer before a convolution with groups, a prologue, or not of images")
    if pointwise(w) and any(s > 1 for s in w.strides):
        return refuse("a producer of which a 1x1 convolution reads a part")
    if isinstance(before, ResizeWorkload):
        return YES
    if before.prologue or getattr(before, "producer", None) or getattr(before, "pool", None):
        return refuse("a producer with steps before it, a pool or a producer")
    if before.dtype != "float32":
        return refuse(f"a producer of {before.dtype}; only float32")
    if isinstance(before, PoolWorkload):
        whole = before.kernel == before.shape[2:]
        return refuse("a producer that is one window") if whole else channel_constants(before)
    if not before.depthwise:
        return refuse("a producer that isn't a depthwise convolution")
    return channel_constants(before)


def channel_constants(w: Any) -> Support:
    """Whether an epilogue reads nothing but constants of the channels."""
    constant = (1, w.out_shape[1], 1, 1)
    for i, operand in enumerate(w.epilogue.operands):
        if operand.shape != constant or operand.view is not None or operand.repeat:
            return refuse(f"operand {i} of a producer has shape {operand.shape}; only {constant}")
    return YES


def pack_producer(
    w: ConvWorkload, target: CpuTarget, weights: list[np.ndarray]
) -> list[np.ndarray]:
    """The producer's weights, as its rows read them."""
    if isinstance(w.producer, ConvWorkload):
        return [pack_filters(w.producer, weights[0], target)]
    return [np.ascontiguousarray(x) for x in weights]


class ProducerStage:
    """The producer of a convolution inside its kernel.

    Constructing it declares the arguments of its rows, as the next ones of the kernel.
    """

    def __init__(self, w: ConvWorkload, target: CpuTarget) -> None:
        self._w, self._geometry, self._lanes = w, ConvGeometry.of(w), target.lanes
        self._blocks = -(-w.in_channels // target.lanes)
        self._rows = producer_rows(w.producer, target)

    def stage(self, data: Any, n: Any, first: Any, count: int) -> Source:
        """Compute what `count` rows of the result read, from row `first` on."""
        g, v, width = self._geometry, self._lanes, self._w.spatial[-1]
        row_of = self._rows.begin(data)
        if g.flat:
            copy = emit.workspace((self._blocks, 1, count * width, v))
            with emit.nest((self._blocks, count)) as (block, i):
                row_of(
                    n, block, first + i,
                    lambda x, lane, value: T.buffer_store(
                        copy, value, [block, 0, i * width + x, lane]
                    ),
                )  # fmt: skip
            return Source(copy, staged=True)
        # Columns past what the windows reach are computed with their row.
        before = g.before[-1]
        rows, length = staged_extents(g, count)[0], max(g.staged[-1], before + width)
        copy = emit.workspace((self._blocks, rows, length, v))
        with emit.nest((self._blocks, rows)) as (block, i):
            row = first * g.stride[0] - g.before[0] + i
            bounds = row_bounds([row], g.spatial[:1], g.before[:1], g.staged[:1])
            padded_row(row_of, n, block, row, bounds, copy, (block, i), (before, width, length), v)
        return Source(copy, staged=True)
