"""How an extent is cut: in even tiles, in panels that overlap at the end, in equal parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import tirx

Index = Any  # an int or an integer expression


def split_extent(extent: int, width: int) -> list[tuple[int, int]]:
    """Cut `extent` into the fewest tiles of at most `width`, all of nearly the same size.

    Returns
    -------
    list of (count, size)
        At most two entries, their sizes one apart; count * size adds up to `extent`.
    """
    tiles = -(-extent // width)
    size, rest = divmod(extent, tiles)
    parts = [(rest, size + 1), (tiles - rest, size)]
    return [(count, n) for count, n in parts if count]


def panel_start(panel: Index, width: int, extent: int) -> Index:
    """First element of a panel; the last one overlaps its neighbour when `width` doesn't divide.

    An extent below `width` is one panel, which is longer than it.
    """
    if extent % width == 0 or extent < width:
        return panel * width
    if isinstance(panel, int):
        return min(panel * width, extent - width)
    return tirx.min(panel * width, extent - width)


def cut_panels(data: np.ndarray, axis: int, width: int, at: int) -> np.ndarray:
    """Cut `axis` into panels of `width`, as `panel_start` places them; their axis goes to `at`.

    What a panel longer than the axis has too much is zero.
    """
    extent = data.shape[axis]
    if extent < width:
        missing = [(0, 0)] * data.ndim
        missing[axis] = (0, width - extent)
        data = np.pad(data, missing)
    starts = [panel_start(p, width, extent) for p in range(-(-extent // width))]
    return np.stack([np.take(data, range(s, s + width), axis) for s in starts], axis=at)


def divisors(n: int, limit: int | None = None) -> tuple[int, ...]:
    """Into how many equal parts n can be cut, `limit` at most, in rising order."""
    most = n if limit is None else min(n, limit)
    return tuple(d for d in range(1, most + 1) if n % d == 0)
