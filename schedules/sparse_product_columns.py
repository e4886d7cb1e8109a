"""The loop over the columns that a panel keeps, several side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit

_FMA_LATENCY = 4


def side_by_side(accumulators: int) -> int:
    """Columns that need accumulators of their own, lest their FMAs wait for one another."""
    return -(-_FMA_LATENCY // accumulators)


def latency_cycles(accumulators: int) -> float:
    """Cycles a column, at least, for which its FMAs wait for those before it."""
    return _FMA_LATENCY / side_by_side(accumulators)


def sum_columns(
    pointers: Any,
    panel: Any,
    tiles: list[emit.RegisterTile],
    add: Callable[[emit.RegisterTile, Any], None],
) -> None:
    """Add the columns of a panel to as many tiles as are given, in turns.

    Parameters
    ----------
    pointers : Buffer
        int32; panel p keeps [pointers[p], pointers[p + 1]).
    add : callable
        Adds one of them to a tile.
    """
    together = len(tiles)
    first = T.Bind(pointers[panel])
    count = T.Bind(pointers[panel + 1] - first)
    with T.serial(0, count // together) as group:
        for i, tile in enumerate(tiles):
            add(tile, first + group * together + i)
    if together > 1:
        with T.serial(0, count % together) as i:
            add(tiles[0], first + count - count % together + i)
