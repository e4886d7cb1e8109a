"""Where a nest's buffers go, so that it can begin while the nests before it still run."""

from __future__ import annotations

from tvm_ext.codegen.lowering.choose import Choice, assign
from tvm_ext.codegen.lowering.footprint import Residency, footprint
from tvm_ext.codegen.lowering.nest import Nest, Tiling
from tvm_ext.codegen.lowering.places import Buffers
from tvm_ext.codegen.lowering.residency import Schedule
from tvm_ext.codegen.lowering.sram import Gaps, aligned, free_gaps, pack

PREFETCH = (4, 3, 2, 1)
"""Weights are put where so many nests before have no buffers, so that they can be loaded early."""

Ranges = list[tuple[int, int]]
"""Bytes of SRAM, as (begin, end)."""


def quiet_gaps(
    schedule: Schedule, index: int, count: int, placed: dict[str, int],
    taken: list[Ranges], sram_bytes: int,
) -> Gaps:  # fmt: skip
    """SRAM that neither a nest nor the `count` ones before it use.

    `taken` has the ranges of the buffers of each nest before it.
    """
    first = max(0, index - count)
    used = [
        (address, address + schedule.lifetimes[name].nbytes)
        for name, address in placed.items()
        if schedule.lifetimes[name].first <= index and schedule.lifetimes[name].last >= first
    ]
    return free_gaps([*used, *(part for parts in taken[first:] for part in parts)], sram_bytes)


def spread(
    nest: Nest, chosen: Choice, residency: Residency, gaps: Gaps, quiet: list[Gaps]
) -> Buffers:
    """Places for the buffers that let a nest begin while those before it still run."""
    sizes = footprint(nest, chosen.tiling, residency)
    weights, rest = sizes.sizes[: len(sizes.weights)], sizes.sizes[len(sizes.weights) :]
    for others in (quiet[-1], gaps):
        for free in quiet:
            if (early := pack(weights, free)) is None:
                continue
            used: Ranges = [(a, a + size) for a, size in zip(early, weights, strict=True)]
            if (late := pack(rest, _without(others, used))) is not None:
                return assign(sizes, [*early, *late])
    return chosen.buffers


def ranges(nest: Nest, tiling: Tiling, residency: Residency, buffers: Buffers) -> Ranges:
    """The bytes of SRAM that a nest's buffers take."""
    sizes = footprint(nest, tiling, residency)
    places = [
        *buffers.weights, *(a for slots in buffers.inputs for a in slots), *buffers.partial,
        *buffers.output,
    ]  # fmt: skip
    return [(a, aligned(a + size)) for a, size in zip(places, sizes.sizes, strict=True)]


def _without(gaps: Gaps, used: Ranges) -> Gaps:
    """The gaps less some used ranges."""
    end = gaps[-1][1] if gaps else 0
    walls, begin = list(used), 0
    for first, last in gaps:
        walls.append((begin, first))
        begin = last
    return free_gaps(walls, end)
