"""MetaSchedule's evolutionary search over one kernel, measured by us."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.runner import RunnerResult

from tvm_ext.schedules.tuned import trace_text
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.tune_candidates import Candidate
from tvm_ext.transfer.tune_measure import Measurement
from tvm_ext.transfer.tune_space import search_space
from tvm_ext.transfer.tune_store import memory_database, tuning_record
from tvm_ext.transfer.tuned_record import TunedRecord

# Boosting rounds without progress after which training ends; MetaSchedule's 50 take up to 9 s on
# the few measurements that there are at first.
_EARLY_STOPPING = 10


@dataclass(frozen=True)
class SearchOptions:
    """How the search goes about it.

    Attributes
    ----------
    round_size : int
        Candidates proposed at a time.
    population : int
        Schedules that each round evolves.
    generations : int
        Times that it does.
    warmup : int
        Measurements before the cost model is asked.
    """

    round_size: int = 16
    population: int = 256
    generations: int = 4
    warmup: int = 32


class SharedModel:
    """Gradient-boosted trees that learn from every kernel's measurements.

    They are first trained after the warm-up: training costs seconds, and until then MetaSchedule
    doesn't ask them.
    """

    def __init__(self, cpu: CpuTarget, options: SearchOptions) -> None:
        self.trees = ms.cost_model.XGBModel(
            num_warmup_samples=options.warmup, num_tuning_cores=cpu.cores, tree_method="hist",
            early_stopping_rounds=_EARLY_STOPPING,
        )  # fmt: skip
        self._warmup, self._count = options.warmup, 0
        self._waiting: dict[ms.TuneContext, tuple[list[Any], list[RunnerResult]]] = {}

    def learn(
        self, context: ms.TuneContext, candidates: Sequence[Any], results: Sequence[RunnerResult]
    ) -> None:
        """Take in one round of a kernel."""
        waiting = self._waiting.setdefault(context, ([], []))
        waiting[0].extend(candidates)
        waiting[1].extend(results)
        self._count += len(results)
        if self._count >= self._warmup:
            for each, (seen, told) in self._waiting.items():
                self.trees.update(each, seen, told)
            self._waiting.clear()


class KernelSearch:
    """Proposes schedules of a function and learns from how they did.

    Parameters
    ----------
    function : PrimFunc
    cpu : CpuTarget
    trials : int
        The most candidates that it will propose.
    known : sequence of TunedRecord
        Measured before, by transfer or an earlier run: the first parents.
    model : SharedModel
    options : SearchOptions
    seed : int

    Attributes
    ----------
    note : str
        Why it doesn't search the whole space; or empty.

    Raises
    ------
    TransferError
        MetaSchedule has no schedule space for the function.
    """

    def __init__(
        self, function: tirx.PrimFunc, cpu: CpuTarget, trials: int,
        known: Sequence[TunedRecord], model: SharedModel, options: SearchOptions, seed: int,
    ) -> None:  # fmt: skip
        self._function, self._cpu, self._model = function, cpu, model
        strategy = ms.search_strategy.EvolutionarySearch(
            population_size=options.population,
            init_min_unmeasured=min(50, options.population // 2),
            genetic_num_iters=options.generations,
        )
        self._context, sketches, self.note = search_space(function, cpu, strategy, seed)
        self._database = memory_database(known, cpu)
        self._workload = self._database.commit_workload(tvm.IRModule({"main": function}))
        self._context.pre_tuning(
            trials, options.round_size, sketches, self._database, model.trees
        )  # fmt: skip
        self._proposed: list[Any] = []

    def propose(self) -> list[Candidate]:
        """The next candidates; none when the search is at its end."""
        self._proposed = list(self._context.generate_measure_candidates() or [])
        return [Candidate(c.sch.mod, trace_text(c.sch.trace), float("inf")) for c in self._proposed]

    def report(self, measurements: Sequence[Measurement]) -> None:
        """How the proposed candidates did, in their order; the last ones may be left out."""
        proposed = self._proposed[: len(measurements)]
        results = [
            RunnerResult(None, m.failure) if m.failure else RunnerResult([m.seconds], None)
            for m in measurements
        ]
        for candidate, m in zip(proposed, measurements, strict=True):
            if not m.failure:
                record = TunedRecord(
                    self._function, "", trace_text(candidate.sch.trace), m.seconds, ""
                )
                self._database.commit_tuning_record(
                    tuning_record(record, self._cpu, self._workload, [m.seconds])
                )
        self._context.notify_runner_results(proposed, results)
        self._model.learn(self._context, proposed, results)
        self._proposed = []
