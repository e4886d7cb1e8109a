"""The input of Winograd convolution, computed by the 1x1 convolution before it.

As in the bottlenecks of ResNet and DenseNet: the 1x1 convolution's result is never in memory. A
task takes several strips of rows, one after the other; the rows that two strips read are kept, so
that only tasks that are neighbours compute rows twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import conv_stage, emit
from tvm_ext.schedules.base import Params, Support, refuse
from tvm_ext.schedules.conv_geometry import ConvGeometry, pointwise
from tvm_ext.schedules.conv_prologue import (
    declare_constants,
    pack_constants,
    processed,
    prologue_seconds,
    supports_prologue,
)
from tvm_ext.schedules.conv_stage import Source
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands
from tvm_ext.schedules.pointwise_tiles import PointwiseTiles, product_seconds
from tvm_ext.schedules.producer_rows import blank
from tvm_ext.schedules.producer_stage import channel_constants
from tvm_ext.schedules.spatial_pack_weights import group_blocks, pack_panels
from tvm_ext.schedules.tiles import Tile, efficiency, legal_tiles
from tvm_ext.schedules.winograd_input import Body
from tvm_ext.target import CpuTarget

# The planes take the place of weights in the L1 cache: measured, the 1x1 convolution takes so much
# longer than alone.
_SLOWER = 1.05
# Rows and columns that neighbouring tiles share.
OVERLAP = 2


def supports_widened(w: ConvWorkload) -> Support:
    """Whether the producer is a 1x1 convolution that can be computed some rows at a time."""
    before = w.producer
    if before.producer or before.pool or w.pool or before.dtype != "float32":
        return refuse("a producer with a pool or a producer, not of float32, or beside a pool")
    if not pointwise(before) or before.groups > 1 or any(s > 1 for s in before.strides):
        return refuse("a producer other than a 1x1 convolution without groups and strides")
    return supports_prologue(before) and channel_constants(before)


def widened_space(w: ConvWorkload, rows: int, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
    """The parameters that the producer adds; `rows` are those of tiles."""
    blocks = group_blocks(w.producer, target)
    tiles = legal_tiles(w.spatial[1], blocks, target)
    # Panels that overlap would take the kept rows of the blocks between them for new ones.
    return {
        "wide_tile": tuple(sorted({t.rows for t in tiles})),
        "wide_blocks": tuple(sorted({t.columns for t in tiles if blocks % t.columns == 0})),
        "strips": tuple(range(1, rows + 1)),
    }


def widened_ways(
    w: ConvWorkload, rows: int, high: int, target: CpuTarget
) -> Iterator[dict[str, Any]]:
    """Values worth a look for those parameters, where a strip is `high` of the `rows` of tiles."""
    blocks = group_blocks(w.producer, target)
    tiles = [t for t in legal_tiles(w.spatial[1], blocks, target) if blocks % t.columns == 0]
    tile = max(tiles, key=lambda t: (efficiency(t, w.spatial[1], blocks, target), t.rows))
    strips = -(-rows // high)
    for tasks in sorted({1, min(target.cores, strips), strips}):
        yield {
            "wide_tile": tile.rows, "wide_blocks": tile.columns, "strips": -(-strips // tasks),
        }  # fmt: skip


def widened_seconds(w: ConvWorkload, params: Params, target: CpuTarget) -> float:
    """Seconds of one core for the producer's result of one image."""
    wide, tile = w.producer, Tile(params["wide_tile"], params["wide_blocks"])
    nbytes = 4 * wide.in_channels * prod(wide.spatial)
    seconds = _SLOWER * product_seconds(wide, tile, wide.spatial[1], target)
    if wide.prologue is None:
        return seconds
    copying = 2 * nbytes / target.shared_bandwidth
    return seconds + max(copying, prologue_seconds(wide, nbytes, target))


def pack_widened(
    w: ConvWorkload, params: Params, target: CpuTarget, weights: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The producer's weights and the constants of its prologue."""
    packed = pack_panels(w.producer, params["wide_blocks"], target, weights[0])
    return [packed, *pack_constants(w.producer, target, weights[1:])]


class WidenedInput:
    """Rows that a 1x1 convolution makes; see `winograd_input.TileInput`.

    Constructing it declares its weights, the constants of its prologue, and its epilogue's
    operands.
    """

    def __init__(self, w: ConvWorkload, params: Params, length: int, target: CpuTarget) -> None:
        self._w, self._wide, self._length, self._lanes = w, w.producer, length, target.lanes
        self._blocks, self._strips = -(-w.in_channels // target.lanes), params["strips"]
        self._width = params["wide_blocks"]
        self._tiles = PointwiseTiles(
            self._wide, params["wide_tile"], self._width, target, "wide_weight"
        )
        self._constants = declare_constants(self._wide, target)
        self._operands = declare_operands(self._wide.epilogue, target.lanes, "y")

    def view(self, data: Any) -> None:
        self._tiles.weights.view()
        self._data = data
        self._flat = conv_stage.lifted_input(
            self._wide, ConvGeometry.of(self._wide), data, self._lanes
        )

    def begin(self, n: Any) -> None:
        self._n = n
        if self._strips > 1:
            shape = (self._blocks, OVERLAP, self._w.spatial[1], self._lanes)
            self._kept = emit.workspace(shape)

    def each(self, strip: Any, start: Any, rows: int, body: Body) -> None:
        v, width = self._lanes, self._width
        base = start - self._w.pad_before[0]
        known: Any = 0
        if self._strips > 1:
            known = tirx.if_then_else(strip > 0, OVERLAP, 0)
        source = Source(self._flat, staged=False)
        if self._wide.prologue is not None:
            source = self._processed(base, known, rows)
        with self._tiles.weights.panels(0, 0) as panel:
            block0 = self._tiles.first_block(panel)
            planes = emit.workspace((width, rows, self._length, v))
            if self._strips > 1:
                with T.If(strip > 0), T.Then():
                    self._recall(planes, block0)
            self._fill(planes, source, panel, base, known, rows)
            if self._strips > 1:
                self._keep(planes, block0, rows - OVERLAP)
            with emit.loop(width) as k:
                body(block0 + k, lambda i, j, lane: planes[k, i, j, lane])

    def _inside(self, y: Any) -> tirx.Expr:
        return tirx.all(y >= 0, y < self._w.spatial[0])

    def _processed(self, base: Any, known: Any, rows: int) -> Source:
        """The rows of the input after the prologue, from row `known` on."""
        wide, v, columns = self._wide, self._lanes, self._w.spatial[1]
        blocks = -(-wide.in_channels // v)
        copy = emit.workspace((blocks, 1, rows * columns, v))
        with emit.nest((blocks, rows - known)) as (block, j):
            i = known + j
            with (
                T.If(self._inside(base + i)),
                T.Then(),
                emit.loop(columns) as x,
                emit.loop(v, "vectorized") as lane,
            ):
                value = self._data[self._n, block, base + i, x, lane]
                value = processed(wide, self._constants, block * v + lane, value)
                T.buffer_store(copy, value, [block, 0, i * columns + x, lane])
        return Source(copy, staged=True)

    def _fill(
        self, planes: Any, source: Source, panel: Any, base: Any, known: Any, rows: int
    ) -> None:
        """Compute the rows of a panel from row `known` on, and pad all of them."""
        before, columns = self._w.pad_before[1], self._w.spatial[1]
        with emit.nest((self._width, rows)) as (k, i):
            blank(planes, (k, i), 0, before, self._lanes)
            blank(planes, (k, i), before + columns, self._length, self._lanes)
        with emit.loop(rows - known) as j:
            i = known + j
            with T.If(self._inside(base + i)):
                with T.Then():
                    self._row(planes, source, panel, base, i, (j, rows))
                with T.Else(), emit.loop(self._width) as k:
                    blank(planes, (k, i), before, before + columns, self._lanes)

    def _row(
        self, planes: Any, source: Source, panel: Any, base: Any, i: Any, turn: tuple[Any, int]
    ) -> None:
        """Compute row `i` of a panel's planes."""
        before, columns = self._w.pad_before[1], self._w.spatial[1]
        block0 = self._tiles.first_block(panel)

        def store(x: Any, c: Any, lane: Any, value: tirx.Expr) -> None:
            index = [self._n, block0 + c, base + i, x, lane]
            value = apply_epilogue(self._wide.epilogue, self._operands, self._lanes, index, [value])
            T.buffer_store(planes, value, [c, i, before + x, lane])

        start = (i if source.staged else base + i) * columns
        self._tiles.tiles(source, self._n, panel, start, columns, *turn, store)

    def _keep(self, planes: Any, block0: Any, first: int) -> None:
        """Keep the last rows for the next strip."""
        before, columns = self._w.pad_before[1], self._w.spatial[1]
        with (
            emit.nest((self._width, OVERLAP, columns)) as (k, row, x),
            emit.loop(self._lanes, "vectorized") as lane,
        ):
            value = planes[k, first + row, before + x, lane]
            T.buffer_store(self._kept, value, [block0 + k, row, x, lane])

    def _recall(self, planes: Any, block0: Any) -> None:
        """Put the last strip's rows where this one reads them."""
        before, columns = self._w.pad_before[1], self._w.spatial[1]
        with (
            emit.nest((self._width, OVERLAP, columns)) as (k, row, x),
            emit.loop(self._lanes, "vectorized") as lane,
        ):
            value = self._kept[block0 + k, row, x, lane]
            T.buffer_store(planes, value, [k, row, before + x, lane])
