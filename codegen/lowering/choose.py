"""The tiling of one nest: the fewest cycles by the timing model among those that fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import nest as kinds
from tvm_ext.codegen.lowering.candidates import candidates
from tvm_ext.codegen.lowering.cost import Candidates, estimate
from tvm_ext.codegen.lowering.emit import NestEmitter
from tvm_ext.codegen.lowering.footprint import Footprint, Residency, footprint
from tvm_ext.codegen.lowering.nest import Nest, Tiling
from tvm_ext.codegen.lowering.places import Addresses, Buffers
from tvm_ext.codegen.lowering.recipe import Recipe
from tvm_ext.codegen.lowering.sram import Gaps, pack
from tvm_ext.codegen.lowering.stream import Stream
from tvm_ext.codegen.lowering.timing import stream_cycles
from tvm_ext.codegen.lowering.tokens import edges_of

_TIMED = 32
"""So many of the tilings with the smallest estimates are timed exactly."""
_NEAR = 1.1
"""Of those, the ones whose estimate is within this factor of the smallest."""
_TIMED_INSTRUCTIONS = 400
"""Timing stops before it would take more compute instructions than this, all tilings together."""


@dataclass(frozen=True)
class Choice:
    """A tiling with its buffers' places and its cycles.

    Attributes
    ----------
    tiling : Tiling
    buffers : Buffers
    cycles : int
        Alone, from the first load to the last store.
    """

    tiling: Tiling
    buffers: Buffers
    cycles: int


@dataclass(frozen=True)
class Shortlist:
    """The tilings of a nest that fit so many free bytes, best estimate first.

    Attributes
    ----------
    tilings : Candidates
    cycles, nbytes : ndarray of int64
        Estimates.
    """

    tilings: Candidates
    cycles: np.ndarray
    nbytes: np.ndarray

    def __len__(self) -> int:
        return len(self.cycles)

    def tiling(self, place: int) -> Tiling:
        """One of them."""
        values = (getattr(self.tilings, n)[place].item() for n in Tiling.__dataclass_fields__)
        return Tiling(*values)


def shortlist(
    accelerator: Accelerator, nest: Nest, residency: Residency, free_bytes: int
) -> Shortlist:
    """All candidates that fit, sorted by cycles, then bytes over the bus."""
    found = candidates(accelerator, nest, residency, free_bytes)
    cycles, nbytes = estimate(
        accelerator, nest, residency, found, overlap=accelerator.double_buffering
    )
    order = np.lexsort((nbytes, cycles))
    return Shortlist(found.take(order), cycles[order], nbytes[order])


def assign(sizes: Footprint, addresses: list[int]) -> Buffers:
    """The addresses, in the order of `Footprint.sizes`, by what they are for."""
    rest = iter(addresses)
    weights = tuple(next(rest) for _ in sizes.weights)
    inputs = tuple(tuple(next(rest) for _ in slots) for slots in sizes.inputs)
    partial = tuple(next(rest) for _ in sizes.partial)
    return Buffers(inputs, weights, tuple(rest), partial)


def choose(
    accelerator: Accelerator, nest: Nest, recipe: Recipe, residency: Residency, gaps: Gaps,
    sram: Mapping[str, int],
) -> Choice | None:  # fmt: skip
    """The best tiling whose buffers fit the gaps of the SRAM; None if none does.

    `sram` has the addresses of storages that are in SRAM whole.
    """
    found = shortlist(accelerator, nest, residency, sum(end - begin for begin, end in gaps))
    best: Choice | None = None
    timed, budget = 0, _TIMED_INSTRUCTIONS
    for place in range(len(found)):
        if best is not None and (timed == _TIMED or found.cycles[place] > _NEAR * found.cycles[0]):
            break
        tiling = found.tiling(place)
        sizes = footprint(nest, tiling, residency)
        if (addresses := pack(sizes.sizes, gaps)) is None:
            continue
        buffers, count = assign(sizes, addresses), instruction_count(nest, tiling)
        timed += 1
        if count > budget:
            # The best estimate is taken as it is; others aren't compared with it.
            best = best or Choice(tiling, buffers, int(found.cycles[place]))
            break
        budget -= count
        cycles = nest_cycles(accelerator, nest, recipe, residency, tiling, buffers, sram)
        if best is None or cycles < best.cycles:
            best = Choice(tiling, buffers, cycles)
    return best


def nest_cycles(
    accelerator: Accelerator, nest: Nest, recipe: Recipe, residency: Residency, tiling: Tiling,
    buffers: Buffers, sram: Mapping[str, int],
) -> int:  # fmt: skip
    """Exact cycles of a nest that runs alone; arguments as of `choose`."""
    storages = dict.fromkeys((*(view.storage for view in nest.inputs), nest.output.storage))
    # Only places relative to each other count, and those of constants not at all.
    memory = {name: index << 28 for index, name in enumerate(storages)}
    stream = Stream(accelerator)
    NestEmitter(
        nest,
        tiling,
        residency,
        buffers,
        Addresses(sram, memory),
        recipe,
        defaultdict(int),
        stream,
        0,
    ).emit()
    serial = not accelerator.double_buffering
    return stream_cycles(stream.steps, edges_of(stream.steps, serial))


def instruction_count(nest: Nest, tiling: Tiling) -> int:
    """Compute instructions of a nest."""
    height, width, filters = nest.output.shape
    count = -(-height // tiling.rows) * -(-width // tiling.columns)
    if nest.operation == kinds.DEPTH_AS_CONV:
        return count * filters
    return count * -(-filters // tiling.channels) * -(-nest.depth // tiling.depth)
