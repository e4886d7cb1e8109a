"""Convolution on the model's own layout, in vectors of output columns.

Every tap multiplies one scalar weight with a vector of neighbouring columns, so channels need not
fill vectors and the output needs no reordering: the way to compute anything whose channels a group
are few or odd. Shared by the direct, the grouped and the transposed convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm import tirx

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.conv_geometry import lifted, pointwise
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.tiles import Tile, cycles_a_step, registers_needed
from tvm_ext.schedules.workload import Shape
from tvm_ext.target import CpuTarget

# Multiply-adds in one unrolled loop body.
_BODY = 160
_MOST_HIGH = 4


@dataclass(frozen=True)
class Taps:
    """The taps of one dimension: tap `first + j * step` reads at `offset + j * stride`."""

    count: int
    first: int = 0
    step: int = 1
    offset: int = 0
    stride: int = 1


@dataclass(frozen=True)
class ColumnTile:
    """`channels` outputs x `high` rows x `vectors` of `lanes` columns in registers."""

    channels: int
    high: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        """Columns of the tile."""
        return self.vectors * self.lanes


@dataclass(frozen=True)
class ColumnGeometry:
    """A convolution with at least two spatial dimensions, its columns long enough for vectors.

    A 1x1 convolution of small maps has its positions flattened into one row.

    Attributes
    ----------
    staged : tuple of int
        Extents that the taps reach, padding included.
    phases : int
        Columns are staged in so many interleaved parts, so that strided taps read neighbours.
    must_stage : bool
        Whether the input can't be read in place.
    """

    spatial: Shape
    out: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    staged: Shape
    phases: int
    must_stage: bool

    @staticmethod
    def of(w: ConvWorkload, lanes: int) -> ColumnGeometry:
        w = lifted(w)
        spatial, out, kernel = w.spatial, w.conv_spatial, w.kernel
        stride, dilation, before, after = w.strides, w.dilation, w.pad_before, w.pad_after
        if pointwise(w) and set(stride) == {1} and out[-1] < 4 * lanes:
            spatial = out = (1, prod(out))
            stride = dilation = kernel = (1, 1)
            before = (0, 0)
        staged = tuple(
            (o - 1) * s + d * (k - 1) + 1
            for o, s, d, k in zip(out, stride, dilation, kernel, strict=True)
        )
        return ColumnGeometry(
            spatial, out, kernel, stride, dilation, before, staged,
            phases=1 if kernel[-1] == 1 else stride[-1],
            must_stage=any(before) or any(after) or stride[-1] > 1,
        )  # fmt: skip

    def taps(self) -> tuple[Taps, ...]:
        return tuple(Taps(k, stride=d) for k, d in zip(self.kernel, self.dilation, strict=True))

    def reach(self, count: int) -> Shape:
        """Extents that `count` rows of the first dimension read."""
        first = (count - 1) * self.stride[0] + self.dilation[0] * (self.kernel[0] - 1) + 1
        return (first, *self.staged[1:])


def overflow(
    w: ConvWorkload, g: ColumnGeometry, chunk: int, passes: int, target: CpuTarget
) -> float:
    """Seconds, on all cores, for what tasks of `chunk` rows read beyond their share of L2."""
    tasks = w.batch * w.groups * -(-g.out[0] // chunk)
    nbytes = 4 * w.in_channels // w.groups * prod(g.reach(chunk))
    return tasks * costs.overflow(nbytes, passes, target) / costs.busy_cores(tasks, target)


def vector_lanes(columns: int, target: CpuTarget) -> int:
    """The widest vector that isn't longer than a row."""
    lanes = target.lanes
    while lanes > columns:
        lanes //= 2
    return lanes


def legal(tile: ColumnTile, target: CpuTarget) -> bool:
    """Whether the tile fits the registers."""
    needed = registers_needed(Tile(tile.channels, tile.high * tile.vectors), target)
    return needed <= target.registers


def tile_cycles(
    tile: ColumnTile, channels: int, rows: int, columns: int, target: CpuTarget
) -> float:
    """Cycles for one reduction step of the whole output, tiles that overlap included."""
    tiles = -(-channels // tile.channels) * -(-rows // tile.high) * -(-columns // tile.width)
    return tiles * cycles_a_step(Tile(tile.channels, tile.high * tile.vectors))


def best_column_tile(
    channels: Sequence[int], total: int, rows: int, columns: int, target: CpuTarget
) -> ColumnTile:
    """The fastest legal tile whose number of channels, of `total`, is one of `channels`."""
    lanes = vector_lanes(columns, target)
    tiles = [
        ColumnTile(r, h, c, lanes)
        for r in channels
        for h in range(1, min(rows, _MOST_HIGH) + 1)
        for c in range(1, columns // lanes + 1)
        if legal(ColumnTile(r, h, c, lanes), target)
    ]
    return min(
        tiles or [ColumnTile(min(channels), 1, 1, lanes)],
        key=lambda t: (
            round(tile_cycles(t, total, rows, columns, target) / total / rows / columns, 3),
            # Ties: the tile that loads least for each multiply-add.
            1 / t.channels + 1 / (t.high * t.vectors),
            t.high,
        ),
    )


def emit_tile(
    tile: ColumnTile,
    channels: Sequence[int],
    taps: Sequence[Taps],
    weight: Callable[[Any, tuple[Any, ...], int], tirx.Expr],
    source: Callable[[Any, tuple[Any, ...], int, Any, Any], tirx.Expr],
    store: Callable[[int, int, Any, tirx.Expr], None],
    unroll: bool = True,
) -> None:
    """Accumulate one register tile over all input channels and taps, and store it.

    Parameters
    ----------
    channels
        Extents of the loops over input channels.
    weight
        Scalar for (input channel, tap of each dimension, output channel of the tile).
    source
        Element for (input channel, offsets of all dimensions but the last, row of the tile,
        column of the tile, offset in the last dimension).
    store
        Stores a result, given output channel, row and column of the tile.
    unroll
        Whether the taps of the last dimension are one loop body.
    """
    acc = emit.RegisterTile(tile.channels, tile.high * tile.vectors, tile.lanes)
    acc.zero()
    last = taps[-1]
    body = acc.rows * acc.columns * last.count

    def step(channel: Any, outer: tuple[Any, ...], j: Any) -> None:
        inner = (*outer, j)
        at = tuple(t.first + x * t.step for t, x in zip(taps, inner, strict=True))
        offsets = tuple(t.offset + x * t.stride for t, x in zip(taps, inner, strict=True))
        acc.multiply_add(
            lambda r: weight(channel, at, r),
            lambda c, lane: source(
                channel, offsets[:-1], c // tile.vectors,
                c % tile.vectors * tile.lanes + lane, offsets[-1],
            ),
        )  # fmt: skip

    extents = [t.count for t in taps]
    nothing = 0 in extents
    with emit.nest(() if nothing else channels) as channel, emit.nest(extents[:-1]) as outer:
        if nothing:
            pass
        elif unroll and body <= _BODY:
            for j in range(last.count):
                step(channel, outer, j)
        else:
            with emit.loop(last.count) as j:
                step(channel, outer, j)
    acc.each(
        lambda r, c, lane: store(
            r, c // tile.vectors, c % tile.vectors * tile.lanes + lane, acc.get(r, c, lane)
        )
    )


def emit_cover(extents: Sequence[int], sizes: Sequence[int], body: Callable[..., None]) -> None:
    """Call `body(*starts)` in loops over tiles of `sizes`; the last tiles overlap."""
    counts = [-(-extent // size) for extent, size in zip(extents, sizes, strict=True)]
    with emit.nest(counts) as tiles:
        body(
            *(
                cuts.panel_start(t, size, extent)
                for t, size, extent in zip(tiles, sizes, extents, strict=True)
            )
        )
