"""SRAM addresses: buffers that live at the same time don't overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ALIGNMENT = 16
"""Every buffer starts at a multiple of this: 4-byte values need 4."""

Gaps = tuple[tuple[int, int], ...]
"""Free ranges, as (begin, end), in rising order."""


def aligned(size: int) -> int:
    """The size rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Lifetime:
    """A buffer, and the first and last nest in which it holds something."""

    name: str
    nbytes: int
    first: int
    last: int


def place_lifetimes(items: Sequence[Lifetime], sram_bytes: int) -> dict[str, int] | None:
    """An address for each, larger ones first, each at the lowest place that is free all its life.

    None if one finds no place.
    """
    placed: list[tuple[Lifetime, int]] = []
    for item in sorted(items, key=lambda each: (-each.nbytes, each.first, each.name)):
        used = [
            (address, address + other.nbytes)
            for other, address in placed
            if other.first <= item.last and item.first <= other.last
        ]
        begin = next((b for b, e in free_gaps(used, sram_bytes) if e - b >= item.nbytes), None)
        if begin is None:
            return None
        placed.append((item, begin))
    return {item.name: address for item, address in placed}


def free_gaps(used: Iterable[tuple[int, int]], sram_bytes: int) -> Gaps:
    """What is left between used ranges, which may overlap; begins are aligned."""
    gaps, begin = [], 0
    for first, end in sorted(used):
        if first > begin:
            gaps.append((begin, first))
        begin = max(begin, aligned(end))
    if sram_bytes > begin:
        gaps.append((begin, sram_bytes))
    return tuple(gaps)


def pack(sizes: Sequence[int], gaps: Gaps) -> list[int] | None:
    """An address for each size in the gaps, larger ones first; None if one doesn't fit."""
    begins, ends = [b for b, _ in gaps], [e for _, e in gaps]
    addresses = [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda each: (-sizes[each], each)):
        for gap, begin in enumerate(begins):
            if ends[gap] - begin >= sizes[index]:
                addresses[index] = begin
                begins[gap] = begin + aligned(sizes[index])
                break
        else:
            return None
    return addresses
