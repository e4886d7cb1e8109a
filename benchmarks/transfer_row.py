"""One model tuned by transfer and by search, from the same start, timed side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import tvm_ext
from benchmarks import harness, zoo
from benchmarks.naive_plan import naive_plan
from benchmarks.transfer_rows import Row, Spent
from tvm_ext import planner
from tvm_ext.grouped_model import GroupedModel, grouped
from tvm_ext.plan import Plan
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.tune_options import TuningOptions, TuningProgress
from tvm_ext.transfer.tune_whole import built

# Largest difference of a tuned model's output from the planner's, of the largest magnitude.
TOLERANCE = 1e-3
# In the folder of a search's records.
SPENT = "search_time.json"


@dataclass(frozen=True)
class Budget:
    """Seconds for each way of tuning, from its start until no candidate is measured any more.

    A search may end sooner, after so many `trials`.
    """

    search_s: float
    transfer_s: float
    trials: int | None = None


@dataclass(frozen=True)
class Way:
    """A way of tuning and what came of it.

    Attributes
    ----------
    plan : Plan
    spent : Spent
    changed : int
        Layers with another schedule than at the start.
    """

    plan: Plan
    spent: Spent
    changed: int


class Bench:
    """Tunes models, each searched once; the searches' records stay in a folder.

    A search from the other starting point measures nothing more: schedules don't depend on what
    they take the place of, so that it chooses among the same records.
    """

    def __init__(
        self, folder: Path, cpu: CpuTarget, budget: Budget, machine: str,
        load: Callable[[str], Any] = zoo.path,
        inputs: Callable[[str], Any] = zoo.sample_inputs,
        options: TuningOptions | None = None,
    ) -> None:  # fmt: skip
        self._folder, self._cpu, self.budget, self._machine = folder, cpu, budget, machine
        self._options = options
        self._load, self._inputs = load, inputs
        self._searched: dict[str, Way] = {}
        self._models: dict[str, GroupedModel] = {}

    def search(self, model: str) -> Way:
        """The search from TVM's default; one that the folder has the end of isn't repeated."""
        if model not in self._searched:
            start, spent = self._start(model, "TVM's default"), self._work_dir(model) / SPENT
            if spent.exists():
                self._searched[model] = self._chosen(model, start, Spent.read(spent))
            else:
                found = self._tune(
                    model, start, method="search", budget_s=self.budget.search_s,
                    trials=self.budget.trials, work_dir=self._work_dir(model),
                )  # fmt: skip
                found.spent.write(spent)
                self._searched[model] = found
        return self._searched[model]

    def _chosen(self, model: str, start: Plan, spent: Spent) -> Way:
        """What the records of a search give from a start; they took as long to find as they did."""
        found = self._tune(
            model, start, method="search", trials=max(spent.candidates, 1),
            work_dir=self._work_dir(model),
        )  # fmt: skip
        return replace(found, spent=spent)

    def row(self, model: str, donor: str, start: str) -> Row:
        """Measure a model from a starting point, ``"TVM's default"`` or ``"our plan"``."""
        self.search(donor)
        search = self.search(model)
        first = self._start(model, start)
        if start != "TVM's default":
            search = self._chosen(model, first, search.spent)
        ways = {"search": search}
        donors = [self._work_dir(donor)]
        for name, budget_s in (("transfer", self.budget.transfer_s), ("unmeasured", 0.0)):
            ways[name] = self._tune(
                model, first, method="transfer", donors=donors, budget_s=budget_s
            )
        ms, ratios = self._timed(model, {"start": first, **{k: w.plan for k, w in ways.items()}})
        spent = {name: way.spent for name, way in ways.items()}
        return Row(
            model, donor, start, spent, ms, ratios,
            self.budget.search_s, self.budget.transfer_s, self._machine,
        )  # fmt: skip

    def _work_dir(self, model: str) -> Path:
        return self._folder / model

    def _model(self, name: str) -> GroupedModel:
        if name not in self._models:
            self._models[name] = grouped(self._load(name), self._cpu)
        return self._models[name]

    def _start(self, name: str, start: str) -> Plan:
        model = self._model(name)
        plan = planner.choose(model.layers, self._cpu)
        return naive_plan(model, plan, self._cpu) if start == "TVM's default" else plan

    def _tune(self, model: str, start: Plan, **arguments: object) -> Way:
        curve: list[tuple[float, float]] = []
        measured: list[int] = [0]

        def progress(now: TuningProgress) -> None:
            curve.append((now.elapsed_s, now.latency_us * 1e-3))
            measured[0] = now.measured

        begin = time.perf_counter()
        plan = tvm_ext.tune(
            self._load(model),
            self._cpu,
            plan=start,
            progress=progress,
            options=self._options,
            **arguments,
        )
        seconds = time.perf_counter() - begin
        changed = sum(a.params != b.params for a, b in zip(plan, start, strict=True))
        spent = Spent(seconds, measured[0], curve or [(seconds, float("nan"))])
        return Way(plan, spent, changed)

    def _timed(
        self, name: str, plans: dict[str, Plan]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Latencies in ms, and speed-ups over the start; outputs are compared first."""
        model = self._model(name)
        exes = {key: built(model, plan, self._cpu) for key, plan in plans.items()}
        inputs = self._inputs(name)
        outputs = {key: _outputs(exe(inputs)) for key, exe in exes.items()}
        for key, found in outputs.items():
            _check(f"{name}, {key}", found, outputs["start"])
        engines = {key: exe.run for key, exe in exes.items()}
        result = harness.compare(engines, rounds=9, warmup=1, min_time_s=0.1)
        ms = {key: result.median(key) * 1e3 for key in engines}
        return ms, {key: result.ratio("start", key) for key in engines}


def _outputs(found: object) -> list[np.ndarray]:
    return list(found) if isinstance(found, list) else [np.asarray(found)]


def _check(what: str, found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for a, b in zip(found, expected, strict=True):
        error = np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)
        if not error <= TOLERANCE:
            raise RuntimeError(f"{what}: relative error {error:.1e}; at most {TOLERANCE}")
