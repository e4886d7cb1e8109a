"""Changed kernels inside the whole model: what loses there is undone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_ext.assemble import assemble
from tvm_ext.executable import Executable
from tvm_ext.grouped_model import GroupedModel
from tvm_ext.kernel_cache import KernelCache
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.target import CpuTarget

# Of the time that changes promise to save together, what the whole model has to save for them to
# be kept without a look at each.
_PROMISED = 0.8
# Rounds after which a clear difference needs no more of them, and what is clear.
_CLEAR_ROUNDS, _CLEAR = 3, 1.1
# One round in so many may say otherwise, and the median has to gain so much, for a change to stay:
# two versions of equal speed differ by less.
_DISSENT, _GAIN = 5, 1.01
# Seconds that profiling a model may take; one run it does in any case.
_PROFILE_S = 1.0


@dataclass(frozen=True)
class RoundOptions:
    """How two versions of a model are compared: they take turns, and medians count.

    Three rounds do where each says the same and the difference is more than a tenth.
    """

    rounds: int = 7
    round_s: float = 0.05


@dataclass(frozen=True)
class Change:
    """A kernel's new schedule for the layers that use it.

    Attributes
    ----------
    layers : dict of str to LayerPlan
        By name.
    gain_s : float
        Seconds that the model is to save.
    """

    layers: Mapping[str, LayerPlan]
    gain_s: float


def layer_seconds(exe: Executable, runs: int = 20) -> dict[str, float]:
    """Seconds of each layer inside the running model, conversions for it included.

    Parameters
    ----------
    exe : Executable
        With inputs set.
    runs : int
        At most; fewer of a slow model, but one.
    """
    start = time.perf_counter()
    exe.run()
    once = time.perf_counter() - start
    found: dict[str, float] = {}
    for row in exe.profile(runs=min(runs, max(1, int(_PROFILE_S / once)))).rows:
        name = row.name.partition(":")[0]
        found[name] = found.get(name, 0.0) + row.ms * 1e-3
    return found


def built(
    model: GroupedModel, plan: Plan, cpu: CpuTarget, cache: KernelCache | None = None
) -> Executable:
    """The model under a plan, with inputs set."""
    exe = assemble(model.mod, model.layers, plan, cpu, model.output_names, cache=cache)
    exe.set_inputs(exe.random_inputs())
    exe.run()
    return exe


def keep_winners(
    model: GroupedModel,
    start: Executable,
    changes: Sequence[Change],
    cpu: CpuTarget,
    options: RoundOptions | None = None,
    cache: KernelCache | None = None,
) -> Plan:
    """Add changes to a model's plan; keep those with which the whole model is faster.

    A kernel that is faster alone may leave the caches worse for the next one, or need another
    layout from it (Gibson and Cano, section 6.3.5). All changes are tried together first: where
    the model gains what they promise, they stay. Where it doesn't, each half of them is tried in
    the same way, down to single changes, which stay if the model is faster with them.

    Parameters
    ----------
    model : GroupedModel
    start : Executable
        The model before, with inputs set.
    changes : sequence of Change
        Each kept or undone as a whole; the best first.
    cpu : CpuTarget
        This machine.
    options : RoundOptions, optional
    cache : KernelCache, optional
        Has the kernels of `start`.
    """
    options = options or RoundOptions()
    current, waiting = start, [list(changes)] if changes else []
    while waiting:
        group = waiting.pop()
        changed = current.plan
        for change in group:
            changed = with_layers(changed, change.layers)
        exe = built(model, changed, cpu, cache)
        before, after = compare(current, exe, options)
        needed = _PROMISED * sum(c.gain_s for c in group) if len(group) > 1 else 0.0
        if is_faster(before, after) and np.median(before) - np.median(after) > needed:
            current = exe
        elif len(group) > 1:
            middle = (len(group) + 1) // 2
            waiting += [group[middle:], group[:middle]]
    return current.plan


def compare(a: Executable, b: Executable, options: RoundOptions) -> tuple[list[float], list[float]]:
    """Seconds of two models that take turns, by round."""
    times: tuple[list[float], list[float]] = ([], [])
    for done in range(options.rounds):
        if done >= _CLEAR_ROUNDS and _clear(*times):
            break
        for exe, own in zip((a, b), times, strict=True):
            start, runs = time.perf_counter(), 0
            while runs == 0 or time.perf_counter() - start < options.round_s:
                exe.run()
                runs += 1
            own.append((time.perf_counter() - start) / runs)
    return times


def is_faster(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether nearly every round, and the median, say that the second version is faster."""
    ratios = [x / y for x, y in zip(before, after, strict=True)]
    slower = sum(ratio <= 1 for ratio in ratios)
    return slower <= len(ratios) // _DISSENT and float(np.median(ratios)) > _GAIN


def _clear(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether every round says that the same one is faster, by far."""
    ratios = [x / y for x, y in zip(a, b, strict=True)]
    return min(ratios) > _CLEAR or max(ratios) < 1 / _CLEAR


def with_layers(plan: Plan, layers: Mapping[str, LayerPlan]) -> Plan:
    """The plan with some layers' entries replaced."""
    return replace(plan, layers=[layers.get(entry.name, entry) for entry in plan])
