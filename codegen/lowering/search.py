"""Tilings searched beyond those of ``mapping="auto"``: ``mapping="search"``."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering.auto import Choices, Stage, decide, stage_network
from tvm_ext.codegen.lowering.choose import Choice
from tvm_ext.codegen.lowering.emit_network import planned_cycles
from tvm_ext.codegen.lowering.evolve import SearchOptions, TilingSearch
from tvm_ext.codegen.lowering.nest import Nest
from tvm_ext.codegen.lowering.plan import NetworkPlan
from tvm_ext.codegen.lowering.recipe import recipe_of
from tvm_ext.codegen.network import Network


def plan_search(
    network: Network, accelerator: Accelerator, options: SearchOptions | None = None
) -> NetworkPlan:
    """Decide as ``mapping="auto"`` does, then look for faster tilings of each nest.

    Every different nest is searched on its own, its exact cycles by the timing model as the
    measurement. Since layers overlap, a faster nest may make a slower network: new tilings are
    taken together if the network's cycles fall, else one by one while they do. So the plan is
    never slower than that of ``"auto"``.

    Parameters
    ----------
    network : Network
    accelerator : Accelerator
    options : SearchOptions, optional

    Raises
    ------
    LoweringError
        A layer doesn't fit the accelerator.
    """
    chosen = options or SearchOptions()
    stage, plan, choices = stage_network(network, accelerator)
    changes, gains = _searched(stage, choices, chosen)
    if not changes:
        return plan
    best = planned_cycles(plan)
    # One by one, those that save most come first; the first try is all of them.
    single = sorted(changes, key=lambda key: -gains[key])
    tries: list[Choices] = [dict(changes), *({key: changes[key]} for key in single)]
    for number, tried in enumerate(tries[: chosen.plans]):
        other = decide(stage, {**choices, **tried})
        if other is None or (cycles := planned_cycles(other)) >= best:
            continue
        plan, best = other, cycles
        choices |= tried
        if number == 0:
            break
    return plan


def _searched(
    stage: Stage, choices: Choices, options: SearchOptions
) -> tuple[dict[Hashable, Choice], dict[Hashable, int]]:
    """Faster tilings by key, and the cycles that all nests of the key save."""
    changes: dict[Hashable, Choice] = {}
    gains: dict[Hashable, int] = {}
    slower: set[Hashable] = set()
    for index, step in enumerate(stage.steps):
        if not isinstance(step, Nest) or (key := stage.key(index)) in slower:
            continue
        start = choices[key]
        assert start is not None
        if key not in changes:
            residency, gaps = stage.surroundings(index)
            search = TilingSearch(
                stage.accelerator, step, recipe_of(step, stage.network.tensors), residency, gaps,
                stage.placed, replace(options, seed=options.seed + index),
            )  # fmt: skip
            found = search.best(start)
            if found.cycles >= start.cycles:
                slower.add(key)
                continue
            changes[key] = found
        gains[key] = gains.get(key, 0) + start.cycles - changes[key].cycles
    return changes, gains
