"""Changed kernels inside the whole model: what loses there is undone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_ext.assemble import assemble
from tvm_ext.executable import Executable
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.tune_model import GroupedModel


@dataclass(frozen=True)
class RoundOptions:
    """How two versions of a model are compared: they take turns, and medians count."""

    rounds: int = 7
    round_s: float = 0.05


def layer_seconds(exe: Executable, runs: int = 20) -> dict[str, float]:
    """Seconds of each layer inside the running model, conversions for it included."""
    found: dict[str, float] = {}
    for row in exe.profile(runs=runs).rows:
        name = row.name.partition(":")[0]
        found[name] = found.get(name, 0.0) + row.ms * 1e-3
    return found


def built(model: GroupedModel, plan: Plan, cpu: CpuTarget) -> Executable:
    """The model under a plan, with inputs set."""
    exe = assemble(model.mod, model.layers, plan, cpu, model.output_names)
    exe.set_inputs(exe.random_inputs())
    exe.run()
    return exe


def keep_winners(
    model: GroupedModel,
    plan: Plan,
    changes: Sequence[Mapping[str, LayerPlan]],
    cpu: CpuTarget,
    options: RoundOptions | None = None,
) -> Plan:
    """Add changes to a plan one by one; keep those with which the whole model is faster.

    A kernel that is faster alone may leave the caches worse for the next one, or need another
    layout from it (Gibson and Cano, section 6.3.5).

    Parameters
    ----------
    model : GroupedModel
    plan : Plan
        The plan to start from.
    changes : sequence of dict
        Groups of layer plans by name, each kept or undone as a whole; the best first.
    cpu : CpuTarget
        This machine.
    """
    current = built(model, plan, cpu) if changes else None
    for change in changes:
        changed = with_layers(plan, change)
        exe = built(model, changed, cpu)
        assert current is not None
        before, after = compare(current, exe, options or RoundOptions())
        if after < before:
            plan, current = changed, exe
    return plan


def compare(a: Executable, b: Executable, options: RoundOptions) -> tuple[float, float]:
    """Median seconds of two models that take turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(options.rounds):
        for exe, own in zip((a, b), times, strict=True):
            start, runs = time.perf_counter(), 0
            while runs == 0 or time.perf_counter() - start < options.round_s:
                exe.run()
                runs += 1
            own.append((time.perf_counter() - start) / runs)
    return float(np.median(times[0])), float(np.median(times[1]))


def with_layers(plan: Plan, layers: Mapping[str, LayerPlan]) -> Plan:
    """The plan with some layers' entries replaced."""
    return replace(plan, layers=[layers.get(entry.name, entry) for entry in plan])
