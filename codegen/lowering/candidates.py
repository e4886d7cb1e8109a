"""The tilings of a nest that are worth a look."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering.cost import Candidates
from tvm_ext.codegen.lowering.footprint import INT32_BYTES, Residency, input_values
from tvm_ext.codegen.lowering.nest import Nest
from tvm_ext.codegen.lowering.sram import ALIGNMENT

_ROWS_WITH_COLUMNS = 4
"""Rows are cut into columns only for tiles of at most so many rows."""

_PARTS = 8
"""Channels are cut into up to so many equal parts, besides powers of two of them."""


def candidates(
    accelerator: Accelerator, nest: Nest, residency: Residency, free_bytes: int
) -> Candidates:
    """Tilings that fit, as columns.

    Rows are cut into every number of equal parts, rows of few into powers of two of columns.
    Channels are cut into equal parts, multiples of the lanes and, for small memories, powers of
    two. Buffers hold one tile, two that alternate, or all.
    """
    height, width, filters = nest.output.shape
    lanes, double = accelerator.lanes, accelerator.double_buffering
    space = [(r, width) for r in _equal_parts(height)]
    space += [
        (r, c) for r in range(1, min(height, _ROWS_WITH_COLUMNS) + 1) for c in _halves(width)[1:]
    ]
    depth = _channel_sizes(nest.depth, lanes) if nest.reduction else [1]
    if nest.fold:
        space, depth = [(r, width) for r in _equal_parts(height)], [nest.depth]
    grid = np.array(
        [(r, c, o, k) for r, c in space for o in _channel_sizes(filters, lanes) for k in depth],
        np.int64,
    )
    # Four combinations of loop order and slots of weights; masks drop those that are the same.
    parts = [_with_slots(nest, grid, outer, keep, double)
             for outer in (False, True) for keep in (False, True)]  # fmt: skip
    joined = Candidates(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return joined.take(_bytes_of(nest, residency, joined) <= free_bytes)


def smallest_bytes(accelerator: Accelerator, nest: Nest, residency: Residency) -> int:
    """SRAM of the smallest tiling."""
    every = candidates(accelerator, nest, residency, 2**62)
    return int(_bytes_of(nest, residency, every).min())


def _with_slots(nest: Nest, grid: Any, outer: bool, keep: bool, double: bool) -> tuple[Any, ...]:
    height, width, filters = nest.output.shape
    rows, columns, channels, depth = grid.T
    space = -(-height // rows) * -(-width // columns)
    cuts, sums = -(-filters // channels), -(-nest.depth // depth)
    blobs = cuts * sums
    inputs = space * (sums if nest.reduction else cuts)
    several = 2 if double else 1
    weight_slots = blobs if keep else np.minimum(blobs, several)
    wanted = np.ones(len(grid), bool)
    if outer:
        wanted &= (space > 1) & (cuts > 1)
    if keep:
        wanted &= (blobs > several) & (space > 1) & (not outer)
    made = (
        rows, columns, channels, depth, np.full(len(grid), outer), np.minimum(inputs, several),
        weight_slots, np.minimum(space * cuts, several),
    )  # fmt: skip
    return tuple(column[wanted] for column in made)


def _bytes_of(nest: Nest, residency: Residency, c: Candidates) -> Any:
    """As `footprint`, for all at once."""
    values = input_values(nest, c.rows, c.columns, c.channels, c.depth)
    results = c.rows * c.columns * c.channels
    total = np.zeros_like(values)
    for view, resident in zip(nest.inputs, residency.inputs, strict=True):
        if not resident:
            total += c.input_slots * _aligned(values * view.item_bytes)
    if nest.has_parameters:
        blob = c.channels * (nest.taps_bytes * c.depth + nest.parameter_bytes)
        total += c.weight_slots * _aligned(blob)
    if not residency.output:
        total += c.output_slots * _aligned(results * nest.output.item_bytes)
    return total + np.where(c.depth < nest.depth, _aligned(results * INT32_BYTES), 0)


def _aligned(size: Any) -> Any:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _equal_parts(total: int) -> list[int]:
    return sorted({-(-total // parts) for parts in range(1, total + 1)}, reverse=True)


def _halves(total: int) -> list[int]:
    return sorted({-(-total // 2**n) for n in range(total.bit_length() + 1)}, reverse=True)


def _channel_sizes(total: int, lanes: int) -> list[int]:
    powers = (2**n for n in range(total.bit_length()))
    multiples = (lanes * 2**n for n in range(total.bit_length()))
    parts = (-(-total // n) for n in range(1, _PARTS + 1))
    whole_lanes = (lanes * -(-total // (lanes * n)) for n in range(1, _PARTS + 1))
    return sorted({min(size, total) for size in chain(powers, multiples, parts, whole_lanes)})
