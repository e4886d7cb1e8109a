"""A layer as a loop nest over tiles: what all kinds of layers have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from tvm_ext.codegen.lowering.views import View
from tvm_ext.codegen.network_layers import Layer, Pair

CONV, MATMUL, DEPTH, DEPTH_AS_CONV = "conv", "matmul", "depth", "depth as conv"
POOL, ELEMENTWISE, SHIFT = "pool", "elementwise", "shift"
"""`SHIFT` requantises int32 sums that a nest with a wide result left in system memory."""


PADDING_BLOB = (-1, -1)
"""Key of the block of padding values, beside the keys of weights' tiles."""


@dataclass(frozen=True)
class Fold:
    """The taps of a window's row as input channels: input-parallel PEs have work for more lanes.

    Channels lie next to each other and pixels do, too, so a row of taps is one run of bytes. In
    SRAM the rows have their padding left and right; pixels overlap: the next one begins `stride`
    pixels on. The nest's window is one pixel wide, its `reduction` is taps times channels.

    Attributes
    ----------
    channels : int
        Of the input.
    stride : int
        Input pixels from one result pixel to the next.
    left, right : int
        Padding of a row, in pixels.
    """

    channels: int
    stride: int
    left: int
    right: int

    def row_bytes(self, width: int) -> int:
        """Bytes of a row of so many pixels, with its padding."""
        return (self.left + width + self.right) * self.channels


@dataclass(frozen=True)
class Nest:
    """One layer, or a part of it, that is run tile by tile.

    Attributes
    ----------
    name : str
        The layer's name.
    kind : str
        For sums of cycles: CONV, DEPTH, MATMUL, REQUANT, POOL, ELEMENTWISE, MOVE.
    operation : str
        Which instruction a tile is; a constant of this module.
    layer : Layer
        Its parameters.
    inputs, output : View
        What it reads and writes.
    kernel, strides, dilations : (rows, columns)
    pads : (top, left)
    reduction : int
        Input channels that each result sums over; 0: a result channel needs the same input channel.
    taps_bytes : int
        Bytes of weights for each result channel and input channel of the sum.
    bias_bytes, scale_bytes : int
        Bytes of biases and of factors for each result channel.
    wide : bool
        The result is int32.
    fold : Fold, optional
        A row of taps counts as channels.
    """

    name: str
    kind: str
    operation: str
    layer: Layer
    inputs: tuple[View, ...]
    output: View
    kernel: Pair = (1, 1)
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pair = (0, 0)
    reduction: int = 0
    taps_bytes: int = 0
    bias_bytes: int = 0
    scale_bytes: int = 0
    wide: bool = False
    fold: Fold | None = None

    @property
    def signature(self) -> Hashable:
        """What its cycles depend on: everything but names and values."""
        views = [
            (view.shape, view.row_pitch, view.pixel_pitch, view.item_bytes)
            for view in (*self.inputs, self.output)
        ]
        return (
            self.operation, tuple(views), self.kernel, self.strides, self.dilations, self.pads,
            self.reduction, self.taps_bytes, self.bias_bytes, self.scale_bytes, self.wide,
            self.fold,
        )  # fmt: skip

    @property
    def taps(self) -> int:
        """Taps of the window."""
        return self.kernel[0] * self.kernel[1]

    @property
    def depth(self) -> int:
        """Input channels of the sum; 1 where there is no sum over channels."""
        return self.reduction or 1

    @property
    def parameter_bytes(self) -> int:
        """Bytes of parameters for each result channel, without the weights."""
        return self.bias_bytes + self.scale_bytes

    @property
    def has_parameters(self) -> bool:
        """Whether it loads weights, biases or factors."""
        return bool(self.taps_bytes or self.parameter_bytes)


@dataclass(frozen=True)
class Span:
    """A range of rows, pixels or channels; `index` counts the tiles."""

    start: int
    count: int
    index: int = 0


@dataclass(frozen=True)
class Tiling:
    """Tile sizes and loop order of a nest.

    Attributes
    ----------
    rows, columns, channels : int
        Of the result.
    depth : int
        Input channels that one instruction sums over.
    weights_outer : bool
        The loop over result channels is outside (weight stationary), or the loops over rows and
        columns are (input stationary). The sum's loop is always innermost (output stationary).
    input_slots, weight_slots, output_slots : int
        Buffers for tiles: two alternate, more keep all tiles.
    """

    rows: int
    columns: int
    channels: int
    depth: int
    weights_outer: bool = False
    input_slots: int = 1
    weight_slots: int = 1
    output_slots: int = 1


@dataclass(frozen=True)
class Tile:
    """One instruction's part of a nest."""

    rows: Span
    columns: Span
    channels: Span
    depth: Span
    is_first: bool
    is_last: bool


def spans(total: int, size: int) -> list[Span]:
    """Cut [0, total) into spans of a size, the last one smaller where it doesn't divide."""
    return [
        Span(start, min(size, total - start), index)
        for index, start in enumerate(range(0, total, size))
    ]


def tiles(nest: Nest, tiling: Tiling) -> Iterator[Tile]:
    """The tiles in the order in which they run."""
    height, width, filters = nest.output.shape
    space = [
        (row, column)
        for row in spans(height, tiling.rows)
        for column in spans(width, tiling.columns)
    ]
    channels = spans(filters, tiling.channels)
    if tiling.weights_outer:
        pairs = [(place, channel) for channel in channels for place in space]
    else:
        pairs = [(place, channel) for place in space for channel in channels]
    depths = spans(nest.depth, tiling.depth)
    for (row, column), channel in pairs:
        for depth in depths:
            yield Tile(row, column, channel, depth, depth is depths[0], depth is depths[-1])


def window_span(nest: Nest, axis: int, result: Span) -> tuple[Span, int]:
    """The input rows (axis 0) or pixels (axis 1) that a range of results needs, and the padding
    before them.

    Where the windows lie in the padding alone, one input row is named, and so much padding before
    it that no window meets it.
    """
    size = nest.inputs[0].shape[axis]
    start = result.start * nest.strides[axis] - nest.pads[axis]
    reach = (result.count - 1) * nest.strides[axis] + (nest.kernel[axis] - 1) * nest.dilations[axis]
    first, end = max(0, start), min(size, start + reach + 1)
    if first >= end:
        return Span(0, 1), reach + 1
    return Span(first, end - first), first - start
