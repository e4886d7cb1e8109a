"""The rows of a depthwise convolution of channel-blocked data, tile by tile.

Nothing is padded or copied: the tiles at both ends of a row are emitted without the taps that fall
outside, and rows at the border run over fewer taps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit
from tvm_ext.schedules.base import Support, refuse
from tvm_ext.schedules.conv_prologue import refuse_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_stage import refuse_pool
from tvm_ext.schedules.window import Axis
from tvm_ext.target import CpuTarget

# Taps of a whole window that are unrolled; beyond it the outer dimensions are loops.
_UNROLL_TAPS = 9
# A longer line of taps is a loop, for the tiles that every line of taps fits in.
_LINE = 7
# What a core convolves in about the time that a parallel loop takes to start.
PARALLEL_BYTES = 96 << 10
# Share of the FMA peak that a tile reaches: each product loads what it multiplies.
_EFFICIENCY = 0.6

# Stores a result, given its column, its lane and the value.
Put = Callable[[Any, Any, tirx.Expr], None]


def supports_depthwise(w: ConvWorkload) -> Support:
    """Whether a convolution is a depthwise one of float32, without other steps and pools."""
    if not w.depthwise:
        return refuse(
            f"{w.in_channels} -> {w.out_channels} channels in {w.groups} groups; "
            "only as many groups as input and output channels"
        )
    if w.dtype != "float32":
        return refuse(f"dtype {w.dtype}; only float32")
    return refuse_prologue(w) and refuse_pool(w)


def tile_columns(width: int, target: CpuTarget) -> int:
    """Output columns in registers.

    Eight accumulators hide the latency of two multiply-adds a cycle; more would spill.
    """
    return min(width, 8 if target.registers < 32 else 12)


def core_seconds(w: ConvWorkload, target: CpuTarget) -> float:
    """Seconds of one core for all of the arithmetic."""
    padded = -(-w.in_channels // target.lanes) * target.lanes / w.in_channels
    return w.flops * padded / (_EFFICIENCY * target.fma_peak)


def pack_filters(w: ConvWorkload, filters: np.ndarray, target: CpuTarget) -> np.ndarray:
    """Filters to (blocks, *kernel, lanes), with zeros for the missing lanes of the last block."""
    v, channels = target.lanes, w.in_channels
    blocks = -(-channels // v)
    data = filters.reshape(channels, *w.kernel)
    data = np.pad(data, [(0, blocks * v - channels)] + [(0, 0)] * len(w.kernel))
    data = data.reshape(blocks, v, *w.kernel)
    return np.ascontiguousarray(np.moveaxis(data, 1, -1))


def emit_row(
    w: ConvWorkload, columns: int, lanes: int, data: Any, weight: Any,
    n: Any, block: Any, at: Sequence[Any], put: Put,
) -> None:  # fmt: skip
    """Compute one row of outputs of a channel block, which is at `at` of the outer dimensions.

    Parameters
    ----------
    w : ConvWorkload
    columns, lanes : int
        Of a tile in registers.
    data, weight : Buffer
        (n, blocks, *spatial, lanes), and as `pack_filters` makes it.
    n, block : index
    at : sequence of index
    put : callable
    """
    *outer, line = _axes(w)

    def row_of_tiles(taps: Sequence[tuple[Any, Any]]) -> None:
        for start, tiles, size, border in _runs(line, columns):
            with emit.loop(tiles) as t:
                tile(taps, start + t * size, size, border)

    def tile(taps: Sequence[tuple[Any, Any]], start: Any, size: int, border: bool) -> None:
        acc = T.alloc_buffer((size * lanes,), "float32", scope="global")
        with emit.loop(size, "unroll") as i, emit.loop(lanes, "vectorized") as lane:
            T.buffer_store(acc, tirx.const(0.0, "float32"), [i * lanes + lane])

        def add(column: int, row: list[Any], index: list[Any], tap: Any) -> None:
            x = line.source(start + column, tap)
            with emit.loop(lanes, "vectorized") as lane:
                product = data[(n, block, *row, x, lane)] * weight[(block, *index, tap, lane)]
                T.buffer_store(acc, acc[column * lanes + lane] + product, [column * lanes + lane])

        _each_tap(w, taps, at, _pairs(line, start if border else None, size), border, size, add)
        with emit.loop(size, "unroll") as i, emit.loop(lanes, "vectorized") as lane:
            put(start + i, lane, acc[i * lanes + lane])

    full = [(0, axis.kernel) for axis in outer]
    cut = [axis.taps(x) for axis, x in zip(outer, at, strict=True)]
    inside = [
        extent >= axis.kernel for axis, (_, extent) in zip(outer, cut, strict=True) if axis.cut
    ]
    if not inside:
        row_of_tiles(full)
        return
    with T.If(tirx.all(*inside)):
        with T.Then():
            row_of_tiles(full)
        with T.Else():
            row_of_tiles(cut)


def _each_tap(
    w: ConvWorkload, taps: Sequence[tuple[Any, Any]], at: Sequence[Any],
    pairs: list[tuple[int, int]], border: bool, size: int,
    add: Callable[[int, list[Any], list[Any], Any], None],
) -> None:  # fmt: skip
    """Call `add(column, row of the input, outer taps, tap of the line)` for what a tile sums."""
    *outer, line = _axes(w)
    whole = all(isinstance(extent, int) for _, extent in taps)
    kind = "unroll" if prod(w.kernel) <= _UNROLL_TAPS and whole else "serial"
    with emit.nest([extent for _, extent in taps], kind) as steps:
        index = [low + step for (low, _), step in zip(taps, steps, strict=True)]
        row = [axis.source(p, t) for axis, p, t in zip(outer, at, index, strict=True)]
        if line.kernel <= _LINE:
            for column, tap in pairs:
                add(column, row, index, tap)
        elif border:
            for column in range(size):
                inside = [tap for c, tap in pairs if c == column]
                with emit.loop(len(inside)) as tap:
                    add(column, row, index, inside[0] + tap)
        else:
            with emit.loop(line.kernel) as tap:
                for column in range(size):
                    add(column, row, index, tap)


def _axes(w: ConvWorkload) -> list[Axis]:
    return [
        Axis(*numbers)
        for numbers in zip(
            w.spatial, w.out_spatial, w.kernel, w.strides, w.dilation, w.pad_before, strict=True
        )
    ]


def _pairs(axis: Axis, start: int | None, size: int) -> list[tuple[int, int]]:
    """(column, tap) of a tile by input column; `start` is None where no tap can fall outside."""
    pairs = [
        (column, tap)
        for column in range(size)
        for tap in range(axis.kernel)
        if start is None or 0 <= axis.source(start + column, tap) < axis.size
    ]
    return sorted(pairs, key=lambda p: (p[0] * axis.stride + p[1] * axis.dilation, p[0]))


def _runs(axis: Axis, tile: int) -> list[tuple[int, int, int, bool]]:
    """The row cut in tiles, as (first column, tiles, columns of a tile, whether at a border)."""
    runs: list[tuple[int, int, int, bool]] = []
    start = 0
    for count, size in cuts.split_extent(axis.out, tile):
        for _ in range(count):
            last = axis.source(start + size - 1, axis.kernel - 1)
            border = axis.source(start, 0) < 0 or last >= axis.size
            if runs and not border and runs[-1][2:] == (size, False):
                runs[-1] = (runs[-1][0], runs[-1][1] + 1, size, False)
            else:
                runs.append((start, 1, size, border))
            start += size
    return runs
