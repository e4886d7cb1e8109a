"""Which activations stay in SRAM from one layer to the next."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering.choose import shortlist
from tvm_ext.codegen.lowering.footprint import Residency
from tvm_ext.codegen.lowering.nest import Nest
from tvm_ext.codegen.lowering.sram import (
    Gaps,
    Lifetime,
    free_gaps,
    place_lifetimes,
)


@dataclass(frozen=True)
class Schedule:
    """What happens to storages over the nests of a network.

    Attributes
    ----------
    nests : sequence of Nest
        In execution order; None for a move that isn't a nest.
    lifetimes : dict of str to Lifetime
        By storage, over the indices of `nests`.
    anchored : frozenset of str
        Storages that are filled from outside or by a move: they are in system memory, never whole
        in SRAM.
    outputs : frozenset of str
        Storages that the rest of the model reads: they are written to system memory in any case.
    """

    nests: Sequence[Nest | None]
    lifetimes: dict[str, Lifetime]
    anchored: frozenset[str]
    outputs: frozenset[str]


class ResidencySearch:
    """Adds storages to SRAM one by one, small ones first, while the estimate doesn't grow.

    Parameters
    ----------
    accelerator : Accelerator
    schedule : Schedule
    """

    def __init__(self, accelerator: Accelerator, schedule: Schedule) -> None:
        self._accelerator, self._schedule = accelerator, schedule
        self._costs: dict[tuple[Hashable, Residency, int], tuple[int, int] | None] = {}

    def best(self) -> dict[str, int]:
        """SRAM addresses of the storages that stay there."""
        schedule, placed = self._schedule, dict[str, int]()
        every = [
            item for name, item in schedule.lifetimes.items()
            if name not in schedule.anchored and item.first < item.last
            and item.nbytes < self._accelerator.sram_bytes
        ]  # fmt: skip
        for item in sorted(every, key=lambda each: (each.nbytes, each.first, each.name)):
            tried = self._placed([*placed, item.name])
            if tried is None:
                continue
            affected = self._affected([*placed, item.name])
            before, after = self._cost(affected, placed), self._cost(affected, tried)
            if after is not None and (before is None or after <= before):
                placed = tried
        return placed

    def residency(self, nest: Nest, placed: dict[str, int]) -> Residency:
        """What holds for one nest."""
        return residency_of(self._schedule, nest, placed)

    def gaps(self, index: int, placed: dict[str, int]) -> Gaps:
        """The SRAM that is free during a nest."""
        return nest_gaps(self._schedule, index, placed, self._accelerator.sram_bytes)

    def _placed(self, names: list[str]) -> dict[str, int] | None:
        items = [self._schedule.lifetimes[name] for name in names]
        return place_lifetimes(items, self._accelerator.sram_bytes)

    def _affected(self, names: list[str]) -> list[int]:
        """Nests during which one of the storages lives; another may change all their places."""
        items = [self._schedule.lifetimes[name] for name in names]
        return sorted({i for item in items for i in range(item.first, item.last + 1)})

    def _cost(self, indices: list[int], placed: dict[str, int]) -> tuple[int, int] | None:
        cycles = nbytes = 0
        for index in indices:
            nest = self._schedule.nests[index]
            if nest is None:
                continue
            gaps = self.gaps(index, placed)
            one = self._nest_cost(nest, self.residency(nest, placed), gaps)
            if one is None:
                return None
            cycles, nbytes = cycles + one[0], nbytes + one[1]
        return cycles, nbytes

    def _nest_cost(self, nest: Nest, residency: Residency, gaps: Gaps) -> tuple[int, int] | None:
        # Buffers are few and small against the gaps, so nearly all of the sum can be used.
        free = sum(end - begin for begin, end in gaps)
        key = (nest.signature, residency, free)
        if key not in self._costs:
            found = shortlist(self._accelerator, nest, residency, free)
            best = (int(found.cycles[0]), int(found.nbytes[0])) if len(found) else None
            self._costs[key] = best
        return self._costs[key]


def residency_of(schedule: Schedule, nest: Nest, placed: dict[str, int]) -> Residency:
    """Which of a nest's tensors are in SRAM, and whether its result is stored."""
    storage = nest.output.storage
    resident = storage in placed
    return Residency(
        tuple(view.storage in placed for view in nest.inputs),
        resident,
        not resident or storage in schedule.outputs,
    )


def nest_gaps(schedule: Schedule, index: int, placed: dict[str, int], sram_bytes: int) -> Gaps:
    """The SRAM that no storage needs during a nest."""
    used = [
        (address, address + schedule.lifetimes[name].nbytes)
        for name, address in placed.items()
        if schedule.lifetimes[name].first <= index <= schedule.lifetimes[name].last
    ]
    return free_gaps(used, sram_bytes)
