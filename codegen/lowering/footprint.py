"""The SRAM that a tiling needs: the buffers of one nest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_ext.codegen.lowering.nest import Nest, Tiling
from tvm_ext.codegen.lowering.sram import aligned

INT32_BYTES = 4
Sizes = Any
"""A number, or an ndarray of one for each tiling."""


@dataclass(frozen=True)
class Residency:
    """Which of a nest's tensors are whole in SRAM, and whether its result goes to system memory.

    Attributes
    ----------
    inputs : tuple of bool
        By input.
    output : bool
        The result is written to its place in SRAM.
    is_stored : bool
        The result is written to system memory.
    """

    inputs: tuple[bool, ...]
    output: bool = False
    is_stored: bool = True


@dataclass(frozen=True)
class Footprint:
    """Bytes of each buffer; a list is empty where a tensor is whole in SRAM.

    Attributes
    ----------
    inputs : tuple of tuple of int
        Slots of each input.
    weights, output, partial : tuple of int
        Slots of weights with their parameters, of the result, of int32 partial sums.
    """

    inputs: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    output: tuple[int, ...]
    partial: tuple[int, ...]

    @property
    def sizes(self) -> list[int]:
        """All buffers: weights first, then inputs, partial sums and results."""
        inputs = [size for slots in self.inputs for size in slots]
        return [*self.weights, *inputs, *self.partial, *self.output]

    @property
    def nbytes(self) -> int:
        """Their sum, each aligned."""
        return sum(map(aligned, self.sizes))


def input_extent(nest: Nest, axis: int, count: Sizes) -> Sizes:
    """Input rows or pixels of a tile with so many result rows or pixels, away from the edges."""
    reach = (count - 1) * nest.strides[axis] + (nest.kernel[axis] - 1) * nest.dilations[axis] + 1
    return np.minimum(nest.inputs[0].shape[axis], reach)


def input_values(nest: Nest, rows: Sizes, columns: Sizes, channels: Sizes, depth: Sizes) -> Sizes:
    """Values of a tile of an input."""
    if nest.fold:
        return input_extent(nest, 0, rows) * nest.fold.row_bytes(nest.inputs[0].shape[1])
    pixels = input_extent(nest, 0, rows) * input_extent(nest, 1, columns)
    return pixels * (depth if nest.reduction else channels)


def footprint(nest: Nest, tiling: Tiling, residency: Residency) -> Footprint:
    """The buffers of a tiling."""
    values = int(input_values(nest, tiling.rows, tiling.columns, tiling.channels, tiling.depth))
    results = tiling.rows * tiling.columns * tiling.channels
    weights = tiling.channels * (nest.taps_bytes * tiling.depth + nest.parameter_bytes)
    return Footprint(
        tuple(
            () if resident else (values * view.item_bytes,) * tiling.input_slots
            for view, resident in zip(nest.inputs, residency.inputs, strict=True)
        ),
        (weights,) * tiling.weight_slots if nest.has_parameters else (),
        () if residency.output else (results * nest.output.item_bytes,) * tiling.output_slots,
        (results * INT32_BYTES,) if tiling.depth < nest.depth else (),
    )
