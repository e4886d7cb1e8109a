"""Copies of input rows with the padding around them, as convolutions stage their input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit


def row_bounds(
    where: Sequence[Any], spatial: Sequence[int], before: Sequence[int], reach: Sequence[int]
) -> list[tirx.Expr]:
    """Conditions under which the row at `where` of the outer dimensions is inside the input.

    Parameters
    ----------
    where
        Position in the input; negative in the padding.
    spatial, before
        Extents of the input, and of the padding before it.
    reach
        Extents that the windows reach, padding included. A dimension that they don't leave on one
        side isn't tested there.
    """
    bounds = []
    for x, extent, padding, reached in zip(where, spatial, before, reach, strict=False):
        if padding:
            bounds.append(x >= 0)
        if reached > extent + padding:
            bounds.append(x < extent)
    # Without a loop a position is a number, and so is what is known of it.
    return [tirx.const(b, "bool") if isinstance(b, bool) else b for b in bounds if b is not True]


def copy_row(
    width: int,
    before: int,
    length: int,
    valid: Sequence[tirx.Expr],
    load: Callable[[Any, Any], tirx.Expr],
    store: Callable[[int, Any, Any, tirx.Expr], None],
    *,
    stride: int = 1,
    phases: int = 1,
    lanes: int = 1,
) -> None:
    """Copy one row of `width` elements into `phases` padded parts of `length` elements.

    Element x of part p is what column x * stride + p - before of the input holds, or zero. The
    bounds are those of loops, so that no element of the copy is tested.

    Parameters
    ----------
    valid
        Conditions under which the row itself is inside the input; outside it is zeros.
    load
        Element for (column of the input, lane).
    store
        Stores an element, given the part, its place there, the lane and the value.
    lanes
        An element is a vector of so many.
    """
    zero = tirx.const(0.0, "float32")

    def span(p: int, start: int, stop: int, value: Callable[[Any, Any], tirx.Expr]) -> None:
        if start < stop:
            with emit.loop(stop - start) as x, emit.loop(lanes, "vectorized") as lane:
                store(p, start + x, lane, value(start + x, lane))

    def blank(p: int, start: int, stop: int) -> None:
        span(p, start, stop, lambda x, lane: zero)

    def copy() -> None:
        for p in range(phases):
            first = min(length, max(0, -(-(before - p) // stride)))
            stop = max(first, min(length, (width - 1 + before - p) // stride + 1))
            blank(p, 0, first)
            span(p, first, stop, lambda x, lane, p=p: load(x * stride + p - before, lane))
            blank(p, stop, length)

    if not valid:
        copy()
        return
    with T.If(tirx.all(*valid)):
        with T.Then():
            copy()
        with T.Else():
            for p in range(phases):
                blank(p, 0, length)
