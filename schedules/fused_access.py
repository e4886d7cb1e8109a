"""How an elementwise kernel's positions read its operands, in as few dimensions as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.workload import Shape


@dataclass(frozen=True)
class Access:
    """How the output's positions read an operand.

    Attributes
    ----------
    view : StridedView
        Of the output's shape, with the operand's strides.
    factors : tuple of int
        How many neighbouring positions read the same element, along each dimension.
    """

    view: StridedView
    factors: Shape

    def index(self, at: Sequence[Any]) -> Any:
        """Where the element of a position lies."""
        return self.view.index(
            [i // f if f > 1 else i for i, f in zip(at, self.factors, strict=True)]
        )

    def lane_index(self, first: Sequence[Any], lane: Any, width: int) -> Any:
        """Where the element lies that belongs to a lane of a vector of `width` positions.

        `first` is the vector's first position, as `boxes.each_vector` gives it: rows are whole, or
        cut at multiples of `width`.
        """
        *outer, column = first
        factor = self.factors[-1]
        if width % factor == 0 or factor % width == 0:
            # The vector starts with an element's first position, or is inside of one: which lanes
            # share an element is known now.
            column = column // factor + lane // factor
        else:
            column = (column + lane) // factor
        at = [i // f if f > 1 else i for i, f in zip(outer, self.factors[:-1], strict=True)]
        return self.view.index([*at, column])


def fuse_dimensions(out: Shape, operands: list[Access]) -> tuple[Shape, list[Access]]:
    """Merge neighbouring dimensions that one stride walks through in every operand.

    Parameters
    ----------
    out : tuple of int
        Extents of the output.
    operands : list of Access
        The operands, broadcast to it.

    Returns
    -------
    (tuple of int, list of Access)
        The output's fused extents, at least one, and the operands under them.
    """
    extents: list[int] = []
    strides: list[Shape] = []
    factors: list[Shape] = []
    ones = (1,) * len(operands)
    for i, extent in enumerate(out):
        if extent == 1:
            continue
        own = tuple(x.view.strides[i] for x in operands)
        repeat = tuple(x.factors[i] for x in operands)
        walked = strides and strides[-1] == tuple(extent * s for s in own)
        if walked and factors[-1] == repeat == ones:
            extents[-1] *= extent
            strides[-1] = own
        else:
            extents.append(extent)
            strides.append(own)
            factors.append(repeat)
    if not extents:
        extents, strides, factors = [1], [(0,) * len(operands)], [ones]
    shape = tuple(extents)
    return shape, [
        Access(
            StridedView(shape, tuple(own[j] for own in strides), x.view.offset),
            tuple(own[j] for own in factors),
        )
        for j, x in enumerate(operands)
    ]
