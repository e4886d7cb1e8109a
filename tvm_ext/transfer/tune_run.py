"""One tuning run: transferred candidates first, then the search, until the budget is spent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from tvm_ext.errors import TransferError
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.prescreen import Prescreen
from tvm_ext.transfer.tune_candidates import Candidate, in_turns, transferred
from tvm_ext.transfer.tune_measure import Measurement, Measurer
from tvm_ext.transfer.tune_options import TuningOptions, TuningProgress
from tvm_ext.transfer.tune_search import KernelSearch, SharedModel
from tvm_ext.transfer.tune_store import TuningStore
from tvm_ext.transfer.tune_task import TuneTask
from tvm_ext.transfer.tuned_record import TunedRecord


@dataclass
class TuningRun:
    """Measures candidates of tasks and keeps them in a store.

    Candidates that the store has are not measured again, and count as trials: a run that was
    killed goes on where it was.

    Attributes
    ----------
    tasks : sequence of TuneTask
        Those with the largest share of the time first.
    total_s : float
        Seconds of the whole model in the default plan.
    deadline : float
        By `time.monotonic`.
    """

    tasks: Sequence[TuneTask]
    store: TuningStore
    measurer: Measurer
    cpu: CpuTarget
    options: TuningOptions
    total_s: float
    started: float
    deadline: float
    from_donors: set[str] = field(default_factory=set)
    _trials: int = 0
    _failed: int = 0
    _screened: int = 0
    _prescreen: Prescreen | None = None
    # What isn't done as asked.
    _notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        records = [record for task in self.tasks for record in self.store.of(task.key)]
        self._trials, self._failed = len(records), sum(record.failed for record in records)

    def transfer(self, donors: Sequence[TunedRecord]) -> None:
        """Measure the donors' schedules: the first one of every kernel, then the next.

        Those of a kernel come in the order of similarity, or, pre-screened, the best share of
        them in the cost model's order.
        """
        if self.options.prescreen < 1:
            fitted = Prescreen.fit(donors, self.cpu, self.options.seed)
            if isinstance(fitted, Prescreen):
                self._prescreen = fitted
            else:
                self._notes.append(fitted)
            self._tell("")
        queues = [self._queue(task, donors) for task in self.tasks]
        batch: list[tuple[TuneTask, Candidate]] = []
        for number, candidate in in_turns(queues):
            task = self.tasks[number]
            known = self.store.find(task.key, candidate.trace) is not None
            if not known and self._left(len(batch)) <= 0:
                break
            self.from_donors.add(candidate.trace)
            if not known:
                batch.append((task, candidate))
            if len(batch) == 2 * self.measurer.workers:
                self._measure(batch)
                batch = []
        self._measure(batch)

    def _queue(self, task: TuneTask, donors: Sequence[TunedRecord]) -> Iterator[Candidate]:
        every = transferred(
            task.program.workload.function, donors, self.cpu, self.options.records_per_kernel
        )
        if self._prescreen is None:
            yield from every
            return
        # To make and rank them takes time as well.
        made = takewhile(lambda _: time.monotonic() < self.deadline, every)
        kept, left_out = self._prescreen.screened(made, self.options.prescreen)
        self._screened += left_out
        yield from kept

    def search(self) -> None:
        """Search round by round for the kernel where the next one promises most."""
        model = SharedModel(self.cpu, self.options.search)
        searches: dict[str, KernelSearch] = {}
        rounds: dict[str, int] = {}
        open_tasks = list(self.tasks)
        while open_tasks and self._left() > 0:
            # What remains to be won shrinks with every round that was spent on it.
            task = max(open_tasks, key=lambda t: self._current(t) / (1 + rounds.get(t.name, 0)))
            if task.name not in searches:
                try:
                    searches[task.name] = KernelSearch(
                        task.program.workload.function, self.cpu, self._left(),
                        self.store.of(task.key), model, self.options.search, self.options.seed,
                    )  # fmt: skip
                except TransferError as error:
                    self._note(f"{task.name}: {error}")
                    open_tasks.remove(task)
                    continue
                if note := searches[task.name].note:
                    self._note(f"{task.name}: {note}")
            rounds[task.name] = rounds.get(task.name, 0) + 1
            # A killed run may leave less than a round of the trials.
            candidates = searches[task.name].propose()[: self._left()]
            if not candidates:
                open_tasks.remove(task)
                continue
            measured = self._measure([(task, c) for c in candidates])
            searches[task.name].report(measured)

    def best(self, task: TuneTask) -> TunedRecord | None:
        """The fastest record of a kernel."""
        records = [r for r in self.store.of(task.key) if not r.failed]
        return records[0] if records else None

    def _current(self, task: TuneTask) -> float:
        """Seconds of a kernel's layers at best."""
        best = self.best(task)
        return task.default_s if best is None else task.default_s - max(task.gain(best.seconds), 0)

    def _left(self, waiting: int = 0) -> int:
        """Candidates that may still be measured."""
        if time.monotonic() >= self.deadline:
            return 0
        return (self.options.trials or 10**9) - self._trials - waiting

    def _measure(self, batch: Sequence[tuple[TuneTask, Candidate]]) -> list[Measurement]:
        """Measure what isn't known yet, and keep it."""
        if not batch:
            return []
        known = [self.store.find(task.key, c.trace) for task, c in batch]
        new = [pair for pair, record in zip(batch, known, strict=True) if record is None]
        found = iter(self.measurer.measure([(task.program, c.mod) for task, c in new]))
        results = []
        for (task, candidate), record in zip(batch, known, strict=True):
            if record is None:
                result = next(found)
                self.store.add(
                    task.program.workload.function, candidate.trace, result.seconds, self.cpu
                )
                self._trials += 1
                self._failed += bool(result.failure)
            else:
                result = Measurement(record.seconds, "failed before" if record.failed else "")
            results.append(result)
        self._tell(batch[-1][0].name)
        return results

    def _note(self, text: str) -> None:
        """Say at once what isn't done as asked, and with every report from now on."""
        self._notes.append(text)
        self._tell("")

    def _tell(self, layer: str) -> None:
        saved = sum(task.default_s - self._current(task) for task in self.tasks)
        self.options.progress(
            TuningProgress(
                time.monotonic() - self.started, self._trials, self._failed,
                (self.total_s - saved) * 1e6, layer, self._screened,
                "; ".join(self._notes),
            )
        )  # fmt: skip
