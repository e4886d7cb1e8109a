"""Tuning: schedules for a model's kernels from other models' records, or from a search."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tvm_ext import planner
from tvm_ext.errors import TuningError
from tvm_ext.grouped_model import GroupedModel, grouped
from tvm_ext.kernel_cache import KernelCache
from tvm_ext.layout_conversions import plain_seconds
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.plan_check import check_plan, given_plan
from tvm_ext.target import CpuTarget, resolve
from tvm_ext.transfer.bank import Bank
from tvm_ext.transfer.kernel_class import classify
from tvm_ext.transfer.prescreen import Prescreen
from tvm_ext.transfer.tune_candidates import Candidate, transferred
from tvm_ext.transfer.tune_donors import Donors, donor_records, read_donors
from tvm_ext.transfer.tune_options import TuningOptions, TuningProgress
from tvm_ext.transfer.tune_rpc import measurer
from tvm_ext.transfer.tune_run import TuningRun
from tvm_ext.transfer.tune_store import TuningStore
from tvm_ext.transfer.tune_task import TuneTask, estimated_seconds, tune_tasks
from tvm_ext.transfer.tune_whole import Change, built, keep_winners, layer_seconds, with_layers
from tvm_ext.transfer.tuned_entry import tuned_entry
from tvm_ext.transfer.tuned_record import TunedRecord, record_name

# What an unmeasured time is multiplied by before it is compared: scaled by the work, a donor's time
# is off by as much.
_DOUBT = 1.25

Model = Any
Target = str | Mapping[str, Any] | CpuTarget


def tune(
    model: Model,
    target: Target = "native",
    *,
    method: str = "transfer",
    budget_s: float | None = None,
    trials: int | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    donors: Donors | None = None,
    top_donors: int | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    plan: Plan | str | os.PathLike[str] | None = None,
    progress: Callable[[TuningProgress], None] | None = None,
    options: TuningOptions | None = None,
) -> Plan:
    """Find faster kernels for a model within a budget, for ``build(model, plan=...)``.

    A kernel is a layer's TVM implementation under another schedule. It takes the layer over only
    where it is measured to be faster than what the plan to start from has there, and where the
    whole model is faster with it than without. Every candidate is built, run and compared with the
    default schedule's output in processes of their own.

    Parameters
    ----------
    model : model
        As `build` takes it.
    target : str, dict or CpuTarget
        This machine, unless nothing is measured.
    method : str
        ``"transfer"`` takes the donors' schedules and fits them to the model's kernels (Gibson
        and Cano, "Transfer-Tuning", PACT 2022). ``"search"`` is MetaSchedule's evolutionary
        search. ``"transfer+search"`` starts the search from the transferred schedules.
    budget_s : float, optional
        Seconds, from the start, after which no further candidate is measured; kernels whose turn
        didn't come get the most similar donor's schedule. The comparison of whole models comes
        after, and decides on these, too. With 0, nothing is measured: each kernel gets the most
        similar donor's schedule, or with ``options.prescreen`` the one ranked first, if the donor's
        time, scaled by the work, is a fifth less than the cost model's estimate for the default.
    trials : int, optional
        The most candidates, those of earlier runs with the same `work_dir` included.
    work_dir : path, optional
        Keeps the records, as MetaSchedule's JSON database; a later run with the same folder, also
        after a kill, doesn't measure again what is there. Without, they are lost.
    donors : dict of str to records, or paths
        Records by donor's name, or other runs' `work_dir`; without, the bank's for this CPU.
    top_donors : int, optional
        Use so many donors, chosen by equation 6.1 of Gibson and Cano; all of them without.
    input_shapes : dict, optional
        As for `build`.
    plan : Plan or path, optional
        To start from, in place of the planner's.
    progress : callable, optional
        Given a `TuningProgress` after each batch of measurements, or once if there are none.
    options : TuningOptions, optional
        Finer ones; the arguments above take the place of theirs where given.

    Returns
    -------
    Plan
        The plan to start from with the winners, whose `source` is ``"transfer"`` or ``"tuned"``.

    Raises
    ------
    TuningError
        An option is wrong, a donor can't be read, or the target isn't this machine.
    ArtifactError
        There is no C compiler, which measuring needs.
    ModelError, InputShapeError, TargetError, PlanError
        As for `build`.
    """
    started = time.monotonic()
    given: dict[str, Any] = {
        "budget_s": budget_s, "trials": trials, "top_donors": top_donors, "progress": progress,
    }  # fmt: skip
    chosen = replace(
        options or TuningOptions(), method=method,
        **{key: value for key, value in given.items() if value is not None},
    )  # fmt: skip
    start = None if plan is None else given_plan(plan)
    cpu = resolve(target, None if start is None else start.precision)
    if chosen.budget_s != 0 and not cpu.is_host:
        raise TuningError(f"can't measure for {cpu.name} on this machine; allowed: budget_s=0")
    known: Mapping[str, Sequence[TunedRecord]] = {}
    if chosen.transfers:
        known = Bank.configured(cpu).donors if donors is None else read_donors(donors)
    if chosen.method == "transfer" and not any(known.values()):
        raise TuningError("method 'transfer' needs donors with records; there are none")
    cut = grouped(model, cpu, input_shapes)
    layers = cut.layers
    if start is None:
        start = planner.choose(layers, cpu)
    else:
        check_plan(start, layers, cpu)
    if chosen.budget_s == 0:
        return _unmeasured(cut, start, known, cpu, chosen, started)
    with tempfile.TemporaryDirectory(prefix="tvm_ext-tune-") as temporary:
        folder = temporary if work_dir is None else work_dir
        return _measured(cut, start, known, cpu, chosen, folder, started)


def _unmeasured(
    cut: GroupedModel, default: Plan, known: Mapping[str, Sequence[TunedRecord]],
    cpu: CpuTarget, options: TuningOptions, started: float,
) -> Plan:  # fmt: skip
    seconds = estimated_seconds(default)
    records = _records(cut, known, cpu, options, seconds)
    prescreen = Prescreen.fit(records, cpu, options.seed) if options.prescreen < 1 else ""
    left_out = 0
    changes: dict[str, LayerPlan] = {}
    for task in tune_tasks(cut.layers, _limits(cut, default, seconds, cpu)):
        candidates = transferred(
            task.program.workload.function, records, cpu, options.records_per_kernel
        )
        if isinstance(prescreen, Prescreen):
            kept, count = prescreen.screened(candidates, options.prescreen)
            left_out += count
            candidates = iter(kept)
        first = next(candidates, None)
        if first is not None and task.gain(_DOUBT * first.predicted_s) > 0:
            changes.update(_entries(task, default, first.trace, first.predicted_s, "transfer"))
    plan = with_layers(default, changes)
    note = prescreen if isinstance(prescreen, str) else ""
    elapsed = time.monotonic() - started
    options.progress(TuningProgress(elapsed, 0, 0, plan.estimate_us, "", left_out, note))
    return plan


def _measured(
    cut: GroupedModel, default: Plan, known: Mapping[str, Sequence[TunedRecord]],
    cpu: CpuTarget, options: TuningOptions, folder: str | os.PathLike[str], started: float,
) -> Plan:  # fmt: skip
    deadline = started + (float("inf") if options.budget_s is None else options.budget_s)
    # Before any worker starts, which would disturb it.
    cache = KernelCache(cpu)
    start = built(cut, default, cpu, cache)
    seconds = layer_seconds(start)
    tasks = tune_tasks(cut.layers, _limits(cut, default, seconds, cpu))
    with (
        TuningStore(folder) as store,
        measurer(cpu, store.scratch, options) as runner,
    ):
        run = TuningRun(
            tasks, store, runner, cpu, options, sum(seconds.values()), started, deadline
        )
        records = _records(cut, known, cpu, options, seconds) if options.transfers else []
        if options.transfers:
            run.transfer(records)
        if options.searches:
            run.search()
        changes = []
        for task in tasks:
            best = run.best(task)
            if best is not None:
                source = "transfer" if best.trace in run.from_donors else "tuned"
                layers = _entries(task, default, best.trace, best.seconds, source)
                changes.append(Change(layers, task.gain(best.seconds)))
            elif options.transfers:
                # The budget ended before its turn came, or what was tried failed.
                guess = _untried(task, records, store, cpu)
                if guess is not None:
                    layers = _entries(task, default, guess.trace, guess.predicted_s, "transfer")
                    changes.append(Change(layers, task.gain(_DOUBT * guess.predicted_s)))
    changes = sorted((c for c in changes if c.gain_s > 0), key=lambda change: -change.gain_s)
    return keep_winners(cut, start, changes, cpu, options.rounds, cache)


def _untried(
    task: TuneTask, records: Sequence[TunedRecord], store: TuningStore, cpu: CpuTarget
) -> Candidate | None:
    """The most similar donor's schedule, of those that weren't measured."""
    every = transferred(task.program.workload.function, records, cpu)
    return next((c for c in every if store.find(task.key, c.trace) is None), None)


def _limits(
    cut: GroupedModel, default: Plan, seconds: Mapping[str, float], cpu: CpuTarget
) -> dict[str, float]:
    """Seconds in which each layer has to be done: its own, less conversions that it brings."""
    return {
        layer.name: seconds[layer.name] - plain_seconds(layer, default[layer.name], cpu)
        for layer in cut.layers
        if seconds.get(layer.name)
    }


def _records(
    cut: GroupedModel, known: Mapping[str, Sequence[TunedRecord]], cpu: CpuTarget,
    options: TuningOptions, seconds: Mapping[str, float],
) -> list[TunedRecord]:  # fmt: skip
    times = {layer.name: seconds.get(layer.name, 0.0) for layer in cut.layers}
    shares = classify(cut.layers, cpu, times).shares
    return donor_records(known, shares, options.top_donors)


def _entries(
    task: TuneTask, default: Plan, trace: str, seconds: float, source: str
) -> dict[str, LayerPlan]:
    """The entries of a kernel's layers with its new schedule."""
    params = {"record": record_name(task.key, trace), "trace": trace}
    return {name: tuned_entry(default[name], params, seconds, source) for name in task.layers}
