"""Cycles of many tilings of a nest at once, from the ISA's own formulas.

An estimate: each unit's work is summed exactly over all tiles, and the units are taken to overlap
but for the first load and the last store. Where a load is long and the tiles before it are short,
the machine waits more than that; the best few tilings are therefore timed instruction by
instruction afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tvm_ext.codegen import isa
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import nest as kinds
from tvm_ext.codegen.lowering.footprint import Residency, input_extent
from tvm_ext.codegen.lowering.nest import Nest
from tvm_ext.codegen.lowering.views import View

Array = Any
"""ndarray of int64, one entry a tiling; the ISA's formulas take them as they take numbers."""

_SETS_PER_FILTER = 2


@dataclass(frozen=True)
class Candidates:
    """Tilings as columns; the fields are those of `Tiling`."""

    rows: Array
    columns: Array
    channels: Array
    depth: Array
    weights_outer: Array
    input_slots: Array
    weight_slots: Array
    output_slots: Array

    def take(self, chosen: Array) -> Candidates:
        """Some of them."""
        return Candidates(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def tile_cycles(
    accelerator: Accelerator, nest: Nest, pixels: Array, channels: Array, depth: Array
) -> Array:
    """The compute unit's cycles for a tile of so many result pixels and channels."""
    if nest.operation in (kinds.CONV, kinds.MATMUL):
        return isa.conv_cycles(accelerator, pixels, nest.taps, depth, channels)
    if nest.operation == kinds.DEPTH_AS_CONV:
        one = isa.conv_cycles(accelerator, pixels, nest.taps, 1, 1) + _SETS_PER_FILTER
        return channels * one
    if nest.operation in (kinds.DEPTH, kinds.POOL):
        return isa.depth_conv_cycles(accelerator, pixels, nest.taps, channels)
    return isa.elementwise_cycles(accelerator, pixels * channels)


def estimate(
    accelerator: Accelerator, nest: Nest, residency: Residency, tilings: Candidates, overlap: bool
) -> tuple[Array, Array]:
    """Cycles and bytes over the bus of each tiling."""
    height, width, filters = nest.output.shape
    rows, columns = _classes(height, tilings.rows), _classes(width, tilings.columns)
    channels, depths = _classes(filters, tilings.channels), _classes(nest.depth, tilings.depth)
    compute: Array = 0
    for (a, r), (b, c), (d, o), (e, k) in product(rows, columns, channels, depths):
        compute = compute + a * b * d * e * tile_cycles(accelerator, nest, r * c, o, k)
    zero: Array = np.zeros_like(tilings.rows)
    loads = stores = _Traffic(zero, zero, zero, zero)
    first = zero
    input_times, weight_times = _repeats(nest, tilings)
    for view, resident in zip(nest.inputs, residency.inputs, strict=True):
        if not resident:
            one = _input_traffic(accelerator, nest, view, rows, columns, channels, depths)
            loads = loads.plus(one, input_times)
            first = first + one.first
    if nest.has_parameters:
        one = _weight_traffic(accelerator, nest, channels, depths)
        loads = loads.plus(one, weight_times)
        first = first + one.first
    if residency.is_stored:
        stores = _box_traffic(
            accelerator, nest.output,
            [(a, r, r) for a, r in rows], [(b, c, c) for b, c in columns], channels,
        )  # fmt: skip
    nbytes = loads.nbytes + stores.nbytes
    if not overlap:
        return compute + loads.cycles + stores.cycles, nbytes
    busiest = np.maximum(np.maximum(compute, loads.cycles), stores.cycles)
    busiest = np.maximum(busiest, loads.bus + stores.bus)
    return busiest + first + stores.first, nbytes


@dataclass(frozen=True)
class _Traffic:
    """DMA of all tiles: cycles, those of the bus, bytes; and the cycles of one full tile."""

    cycles: Array
    bus: Array
    nbytes: Array
    first: Array

    def plus(self, other: _Traffic, times: Array) -> _Traffic:
        return _Traffic(
            self.cycles + other.cycles * times,
            self.bus + other.bus * times,
            self.nbytes + other.nbytes * times,
            self.first + other.first,
        )


_Classes = list[tuple[Array, Array]]


def _classes(total: int, size: Array) -> _Classes:
    """Tiles of the full size and the one that is left over, as (how many, size)."""
    rest = total % size
    return [(total // size, np.minimum(size, total)), ((rest > 0) * 1, np.maximum(rest, 1))]


def _repeats(nest: Nest, tilings: Candidates) -> tuple[Array, Array]:
    """How often each distinct tile of the input and of the weights is loaded."""
    height, width, filters = nest.output.shape
    space = -(-height // tilings.rows) * -(-width // tilings.columns)
    channels, depths = -(-filters // tilings.channels), -(-nest.depth // tilings.depth)
    if not nest.reduction:
        # An input tile belongs to one result tile. Weights are those of its channels.
        kept = tilings.weights_outer | (tilings.weight_slots >= channels)
        return np.ones_like(space), np.where(kept, 1, space)
    inputs = space * depths
    from_memory = np.where(
        tilings.weights_outer, channels, np.where(depths > tilings.input_slots, channels, 1)
    )
    input_times = np.where(tilings.input_slots >= inputs, 1, from_memory)
    kept = tilings.weight_slots >= np.where(tilings.weights_outer, depths, channels * depths)
    return input_times, np.where(kept, 1, space)


def _input_traffic(
    accelerator: Accelerator, nest: Nest, view: View, rows: _Classes, columns: _Classes,
    channels: _Classes, depths: _Classes,
) -> _Traffic:  # fmt: skip
    pixels = [(b, c, input_extent(nest, 1, c)) for b, c in columns]
    parts = depths if nest.reduction else channels
    if nest.fold:
        pixels, parts = [(1, view.shape[1], view.shape[1])], [(1, nest.fold.channels)]
    return _box_traffic(
        accelerator, view,
        [(a, r, input_extent(nest, 0, r)) for a, r in rows], pixels, parts,
    )  # fmt: skip


def _box_traffic(
    accelerator: Accelerator, view: View, rows: list[tuple[Array, Array, Array]],
    columns: list[tuple[Array, Array, Array]], channels: _Classes,
) -> _Traffic:  # fmt: skip
    total, first = _Traffic(0, 0, 0, 0), None
    for (a, _, r), (b, _, c), (d, k) in product(rows, columns, channels):
        pixel = k * view.item_bytes
        whole_pixels = pixel == view.pixel_pitch
        whole_rows = whole_pixels & (c * pixel == view.row_pitch)
        run: Array = np.where(whole_rows, r * c * pixel, np.where(whole_pixels, c * pixel, pixel))
        runs: Array = np.where(whole_rows, 1, np.where(whole_pixels, r, r * c))
        cycles = isa.dma_cycles(accelerator, run, runs)
        first = cycles if first is None else first
        times = a * b * d
        total = total.plus(
            _Traffic(cycles, isa.bus_cycles(accelerator, run, runs), r * c * pixel, 0), times
        )
    return _Traffic(total.cycles, total.bus, total.nbytes, first)


def _weight_traffic(
    accelerator: Accelerator, nest: Nest, channels: _Classes, depths: _Classes
) -> _Traffic:
    total, first = _Traffic(0, 0, 0, 0), None
    several = depths[0][0] + depths[1][0] > 1
    for (d, o), (e, k) in product(channels, depths):
        # Biases come with the first part of the sum, factors with the last: half of both each.
        extra = np.where(several, nest.parameter_bytes // 2, nest.parameter_bytes)
        size = o * (nest.taps_bytes * k + extra)
        cycles = isa.dma_cycles(accelerator, size, 1)
        first = cycles if first is None else first
        total = total.plus(_Traffic(cycles, isa.bus_cycles(accelerator, size, 1), size, 0), d * e)
    return _Traffic(total.cycles, total.bus, total.nbytes, first)
