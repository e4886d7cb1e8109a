"""Tilings, loop orders and places by the timing model: ``mapping="auto"``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering.candidates import smallest_bytes
from tvm_ext.codegen.lowering.choose import Choice, choose, shortlist
from tvm_ext.codegen.lowering.footprint import Residency
from tvm_ext.codegen.lowering.moves import Move
from tvm_ext.codegen.lowering.nest import Nest
from tvm_ext.codegen.lowering.nests import folded
from tvm_ext.codegen.lowering.plan import (
    MovePlan,
    NestPlan,
    NetworkPlan,
    extra_storages,
    move_too_large,
    steps_of,
    too_large,
)
from tvm_ext.codegen.lowering.recipe import recipe_of
from tvm_ext.codegen.lowering.residency import (
    ResidencySearch,
    Schedule,
    nest_gaps,
    residency_of,
)
from tvm_ext.codegen.lowering.spread import PREFETCH, Ranges, quiet_gaps, ranges, spread
from tvm_ext.codegen.lowering.sram import Lifetime
from tvm_ext.codegen.lowering.views import Placement, place_tensors
from tvm_ext.codegen.network import Network


def plan_network(network: Network, accelerator: Accelerator) -> NetworkPlan:
    """Decide tilings, loop orders and places by the timing model.

    Raises
    ------
    LoweringError
        A layer doesn't fit the accelerator.
    """
    placement = place_tensors(network)
    steps = _with_folds(network, accelerator, steps_of(network, placement, accelerator))
    for step in steps:
        if isinstance(step, Nest):
            _check_fits(step, accelerator)
    schedule = _schedule(network, placement, steps)
    search = ResidencySearch(accelerator, schedule)
    placed = search.best()
    while (items := _decide(network, accelerator, schedule, steps, placed)) is None:
        # Buffers didn't fit the gaps between storages: the largest storage gives way.
        del placed[max(placed, key=lambda name: (schedule.lifetimes[name].nbytes, name))]
    return NetworkPlan(
        network, accelerator, placement, items, placed, extra_storages(steps),
        serial=not accelerator.double_buffering,
    )  # fmt: skip


def _with_folds(
    network: Network, accelerator: Accelerator, steps: Sequence[Nest | Move]
) -> list[Nest | Move]:
    """Convolutions of the network's inputs with a row of taps as channels, where that is faster."""
    if accelerator.parallel != "input":
        return list(steps)
    made: list[Nest | Move] = []
    for step in steps:
        made.append(step)
        if isinstance(step, Move) or step.inputs[0].storage not in network.inputs:
            continue
        if (fold := folded(step, accelerator.lanes)) is not None:
            cycles = []
            for nest in (step, fold):
                found = shortlist(accelerator, nest, Residency((False,)), accelerator.sram_bytes)
                cycles.append(float(found.cycles[0]) if len(found) else inf)
            if cycles[1] < cycles[0]:
                made[-1] = fold
    return made


def _check_fits(nest: Nest, accelerator: Accelerator) -> None:
    residency = Residency((False,) * len(nest.inputs))
    needed = smallest_bytes(accelerator, nest, residency)
    if needed > accelerator.sram_bytes:
        raise too_large(nest, needed, accelerator)


def _schedule(network: Network, placement: Placement, steps: Sequence[Nest | Move]) -> Schedule:
    uses: dict[str, list[int]] = {}
    moved: set[str] = set()
    for index, step in enumerate(steps):
        if isinstance(step, Move):
            names = [step.source, step.target]
            moved.update(names)
        else:
            names = [*(view.storage for view in step.inputs), step.output.storage]
        for name in names:
            uses.setdefault(name, []).append(index)
    views = placement.views
    return Schedule(
        [step if isinstance(step, Nest) else None for step in steps],
        {
            name: Lifetime(name, placement.storages[name], min(used), max(used))
            for name, used in uses.items()
        },
        frozenset(moved | {views[name].storage for name in network.inputs}),
        frozenset(views[name].storage for name in network.outputs),
    )


def _decide(
    network: Network, accelerator: Accelerator, schedule: Schedule, steps: Sequence[Nest | Move],
    placed: dict[str, int],
) -> tuple[NestPlan | MovePlan, ...] | None:  # fmt: skip
    """Tilings and buffers of all nests for given storages in SRAM; None if one doesn't fit."""
    items: list[NestPlan | MovePlan] = []
    taken: list[Ranges] = []
    known: dict[Hashable, Choice | None] = {}
    for index, step in enumerate(steps):
        gaps = nest_gaps(schedule, index, placed, accelerator.sram_bytes)
        if isinstance(step, Move):
            slots = 2 if accelerator.double_buffering else 1
            if (chunk := step.chunk(gaps, slots)) is None:
                if not placed:
                    raise move_too_large(step, slots, accelerator)
                return None
            items.append(MovePlan(step, chunk))
            taken.append([(address, address + chunk[0]) for address in chunk[1]])
            continue
        recipe = recipe_of(step, network.tensors)
        residency = residency_of(schedule, step, placed)
        key = (step.signature, residency, gaps)
        if key not in known:
            known[key] = choose(accelerator, step, recipe, residency, gaps, placed)
        chosen = known[key]
        if chosen is None:
            if not placed:
                raise too_large(step, smallest_bytes(accelerator, step, residency), accelerator)
            return None
        quiet = [
            quiet_gaps(schedule, index, count, placed, taken, accelerator.sram_bytes)
            for count in PREFETCH
        ]
        buffers = spread(step, chosen, residency, gaps, quiet)
        items.append(NestPlan(step, recipe, residency, chosen.tiling, buffers, chosen.cycles))
        taken.append(ranges(step, chosen.tiling, residency, buffers))
    return tuple(items)
