"""Tile sizes for a loop of another extent."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, prod

TILE_RULES = ("tiles", "shares")


def rescale(factors: Sequence[int], extent: int, rule: str, most: int = 64) -> list[int]:
    """The factors of a perfect split, for another extent.

    A split of N into (N / 32, 4, 8) is read with the outermost factor left open. Each other one
    becomes the divisor of what is left that is nearest in ratio to its aim, from the innermost
    outwards; the outermost takes the rest (Gibson and Cano, "Transfer-Tuning", section 6.2.1).

    Parameters
    ----------
    factors : sequence of int
        Outermost first; their product is the old extent.
    extent : int
        The new one.
    rule : str
        What an inner factor aims at: ``"tiles"``, the same size, which keeps register and cache
        tiles; or ``"shares"``, the same share of the extent, but for the innermost, which is a
        vector.
    most : int
        The largest innermost factor.

    Returns
    -------
    list of int
        As many factors, with the product `extent`.
    """
    old, left = prod(factors), extent
    inner: list[int] = []
    for factor in reversed(factors[1:]):
        first = not inner
        aim = factor if rule == "tiles" or first else factor * extent / old
        allowed = [d for d in divisors(left) if not first or d <= most]
        chosen = min(allowed, key=lambda d: (abs(log(d / aim)), d))
        inner.append(chosen)
        left //= chosen
    return [left, *reversed(inner)]


def divisors(number: int) -> list[int]:
    """All divisors, rising."""
    low = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*low, *(number // d for d in low)})
