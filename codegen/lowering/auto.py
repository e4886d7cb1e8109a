"""Tilings, loop orders and places by the timing model: ``mapping="auto"``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering.candidates import smallest_bytes
from tvm_ext.codegen.lowering.check import bytes_alone
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
from tvm_ext.codegen.lowering.sram import Gaps, Lifetime
from tvm_ext.codegen.lowering.views import Placement, place_tensors
from tvm_ext.codegen.network import Network


@dataclass(frozen=True)
class Stage:
    """A network on its way to a plan: everything but tilings and buffers is decided.

    Attributes
    ----------
    network : Network
    accelerator : Accelerator
    placement : Placement
    steps : sequence of Nest or Move
        In execution order.
    schedule : Schedule
        Of the steps.
    placed : dict of str to int
        Addresses of the storages that stay in SRAM.
    """

    network: Network
    accelerator: Accelerator
    placement: Placement
    steps: Sequence[Nest | Move]
    schedule: Schedule
    placed: dict[str, int]

    def surroundings(self, index: int) -> tuple[Residency, Gaps]:
        """What of a nest's tensors is in SRAM, and what is free there for its buffers."""
        nest = self.steps[index]
        assert isinstance(nest, Nest)
        gaps = nest_gaps(self.schedule, index, self.placed, self.accelerator.sram_bytes)
        return residency_of(self.schedule, nest, self.placed), gaps

    def key(self, index: int) -> Hashable:
        """Nests with the same key have the same tiling."""
        nest = self.steps[index]
        assert isinstance(nest, Nest)
        return (nest.signature, *self.surroundings(index))


Choices = dict[Hashable, Choice | None]
"""Tilings with buffers by `Stage.key`; None where nothing fits."""


def plan_network(network: Network, accelerator: Accelerator) -> NetworkPlan:
    """Decide tilings, loop orders and places by the timing model.

    Raises
    ------
    LoweringError
        A layer doesn't fit the accelerator.
    """
    return stage_network(network, accelerator)[1]


def stage_network(network: Network, accelerator: Accelerator) -> tuple[Stage, NetworkPlan, Choices]:
    """`plan_network` with what was decided first, and the tilings that were chosen."""
    placement = place_tensors(network)
    steps = _with_folds(network, accelerator, steps_of(network, placement, accelerator))
    for step in steps:
        if isinstance(step, Nest):
            needed = bytes_alone(accelerator, step)
            if needed > accelerator.sram_bytes:
                raise too_large(step, needed, accelerator)
    schedule = _schedule(network, placement, steps)
    placed = ResidencySearch(accelerator, schedule).best()
    stage, choices = Stage(network, accelerator, placement, steps, schedule, placed), Choices()
    while (plan := decide(stage, choices)) is None:
        # Buffers didn't fit the gaps between storages: the largest storage gives way.
        del placed[max(placed, key=lambda name: (schedule.lifetimes[name].nbytes, name))]
        choices.clear()
    return stage, plan, choices


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


def decide(stage: Stage, choices: Choices) -> NetworkPlan | None:
    """Tilings and buffers of all nests, and so the plan; None if one doesn't fit.

    `choices` are taken where there are any, and the others are added to it.
    """
    accelerator, placed = stage.accelerator, stage.placed
    items: list[NestPlan | MovePlan] = []
    taken: list[Ranges] = []
    for index, step in enumerate(stage.steps):
        if isinstance(step, Move):
            slots = 2 if accelerator.double_buffering else 1
            gaps = nest_gaps(stage.schedule, index, placed, accelerator.sram_bytes)
            if (chunk := step.chunk(gaps, slots)) is None:
                if not placed:
                    raise move_too_large(step, slots, accelerator)
                return None
            items.append(MovePlan(step, chunk))
            taken.append([(address, address + chunk[0]) for address in chunk[1]])
            continue
        recipe = recipe_of(step, stage.network.tensors)
        residency, gaps = stage.surroundings(index)
        key = stage.key(index)
        if key not in choices:
            choices[key] = choose(accelerator, step, recipe, residency, gaps, placed)
        chosen = choices[key]
        if chosen is None:
            if not placed:
                raise too_large(step, smallest_bytes(accelerator, step, residency), accelerator)
            return None
        quiet = [
            quiet_gaps(stage.schedule, index, count, placed, taken, accelerator.sram_bytes)
            for count in PREFETCH
        ]
        buffers = spread(step, chosen, residency, gaps, quiet)
        items.append(NestPlan(step, recipe, residency, chosen.tiling, buffers, chosen.cycles))
        taken.append(ranges(step, chosen.tiling, residency, buffers))
    return NetworkPlan(
        stage.network, accelerator, stage.placement, tuple(items), placed,
        extra_storages(stage.steps), serial=not accelerator.double_buffering,
    )  # fmt: skip
