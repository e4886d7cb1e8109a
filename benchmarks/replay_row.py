"""One task of Ansor's: its records replayed, repaired, checked and timed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tvm

from benchmarks.kernels import conv_kernel
from benchmarks.ranks import spearman
from benchmarks.replay_convs import convolution
from benchmarks.tvm_threads import set_tvm_threads
from tvm_ext.schedules import algorithms
from tvm_ext.target import CpuTarget
from tvm_ext.transfer import tune_worker
from tvm_ext.transfer.ansor import DagError, ReplayError, ShippedTask, Variant, repaired
from tvm_ext.transfer.tune_processes import Processes

LEAST_RECORDS = 5
"""So many records of a task are needed for a rank correlation."""

_TOLERANCE = 1e-4
_BUILD_S, _RUN_S = 120.0, 60.0
# Milliseconds of a repetition, and repetitions; first of all, then of the fastest again.
_FIRST = (10.0, 3)
_AGAIN = (20.0, 9)
_FASTEST = 3


@dataclass(frozen=True)
class Row:
    """What became of a task's records.

    Attributes
    ----------
    network, operators : str
    threads : int
    tried, right : int
        Records, and those of which every variant gives the right result.
    failures : tuple of str
        Of the others.
    log_s : float
        The log's best, on its own machine.
    best_s : float
        The fastest variant of all records; NaN where none is right.
    best : str
        That variant's name.
    own : tuple of (str, float) or None
        The planner's first choice for the same convolution, without what is fused to it, and its
        seconds; None for other operators.
    rank : float
        Correlation of the records' times, as replayed, with the log's; NaN if they are too few.
    """

    network: str
    operators: str
    threads: int
    tried: int
    right: int
    failures: tuple[str, ...]
    log_s: float
    best_s: float
    best: str
    own: tuple[str, float] | None
    rank: float


@dataclass(frozen=True)
class _Built:
    record: int
    variant: Variant
    path: Path


def measure(task: ShippedTask, target: CpuTarget) -> Row:
    """Measure a task with the number of threads that its log has, if there are so many cores.

    Every variant of every record is built and run in a process of its own; its result is compared
    with numpy's in float64. The fastest are timed again.

    Raises
    ------
    RuntimeError
        The result of our own kernel is wrong.
    """
    threads = min(task.origin.threads, target.cores)
    failures: list[str] = []
    found: list[tuple[int, Variant]] = []
    for number, record in enumerate(task.records):
        try:
            found += [(number, v) for v in repaired(task.dag, record.steps, target.tvm)]
        except (DagError, ReplayError) as error:
            failures.append(f"{record.source.line}: {error}")
    with tempfile.TemporaryDirectory() as name, _processes(threads) as processes:
        folder = Path(name)
        inputs = _save_arguments(task, folder)
        built, wrong = _build(found, folder, processes, target.cores)

        def run(some: Sequence[_Built], least_ms: float, repeats: int) -> list[float]:
            jobs = [(str(b.path), name, inputs, least_ms, repeats) for b in some]
            seconds = []
            for b, outcome in zip(
                some, processes.map("run", jobs, workers=1, timeout_s=_RUN_S), strict=True
            ):
                error, measured = outcome.value or (0.0, np.nan)
                if outcome.failure or not error <= _TOLERANCE:
                    wrong[b.record] = outcome.failure or f"relative error {error:.1e}"
                    measured = np.nan
                seconds.append(measured)
            return seconds

        first = run(built, *_FIRST)
        order = sorted(range(len(built)), key=lambda i: (np.isnan(first[i]), first[i]))
        fastest = [built[i] for i in order[:_FASTEST] if not np.isnan(first[i])]
        again = run(fastest, *_AGAIN)
    best_s, best = min(
        ((s, b.variant.name) for s, b in zip(again, fastest, strict=True) if not np.isnan(s)),
        default=(np.nan, ""),
    )
    failures += [f"{task.records[n].source.line}: {reason}" for n, reason in wrong.items()]
    return Row(
        task.origin.network, task.operators, threads, len(task.records),
        len(task.records) - len(failures), tuple(failures), task.records[0].median, float(best_s),
        best, _own(task, target, threads), _rank(task, built, first),
    )  # fmt: skip


def _build(
    found: Sequence[tuple[int, Variant]], folder: Path, processes: Processes, workers: int
) -> tuple[list[_Built], dict[int, str]]:
    """The variants that compile, and why records have one that doesn't."""
    candidates = [_Built(n, v, folder / f"{i}.so") for i, (n, v) in enumerate(found)]
    jobs = [(c.variant.schedule.mod, c.variant.target, str(c.path)) for c in candidates]
    outcomes = processes.map("build", jobs, workers, _BUILD_S)
    built, wrong = [], {}
    for candidate, outcome in zip(candidates, outcomes, strict=True):
        if outcome.failure:
            wrong[candidate.record] = outcome.failure.splitlines()[0]
        else:
            built.append(candidate)
    return built, wrong


@contextmanager
def _processes(threads: int) -> Iterator[Processes]:
    """Processes whose kernels run on so many threads."""
    key = "TVM_NUM_THREADS"
    before = os.environ.get(key)
    os.environ[key] = str(threads)
    try:
        processes = Processes(Path(tune_worker.__file__))
    finally:
        if before is None:
            del os.environ[key]
        else:
            os.environ[key] = before
    with processes:
        yield processes


def _save_arguments(task: ShippedTask, folder: Path) -> int:
    """Random inputs and the expected output as files; the number of inputs."""
    rng = np.random.default_rng(0)
    count = len(task.dag.text.placeholders)
    inputs = [rng.standard_normal(s).astype("float32") for _, s in task.dag.arguments[:count]]
    (expected,) = task.dag.evaluate(inputs)
    for i, array in enumerate(inputs):
        np.save(folder / f"{i}.npy", array)
    np.save(folder / "expected.npy", expected.astype("float32"))
    return count


def _own(task: ShippedTask, target: CpuTarget, threads: int) -> tuple[str, float] | None:
    """The algorithm that should be the fastest by its own estimate, and its time."""
    workload = convolution(task)
    if workload is None:
        return None
    target = replace(target, cores=threads)
    costs = {
        name: algorithm.cost(workload, algorithm.default(workload, target), target)
        for name, algorithm in algorithms(workload).items()
        if algorithm.storage == "dense" and algorithm.supports(workload, target)
    }
    kernel = conv_kernel(min(costs, key=lambda name: costs[name]), workload, target)
    if not kernel.error <= _TOLERANCE:
        raise RuntimeError(f"{kernel.name} for {task.operators}: the error is {kernel.error}")
    set_tvm_threads(threads)
    least_ms, repeats = _AGAIN
    timer = kernel.module.time_evaluator(
        "main", tvm.cpu(), number=1, repeat=repeats, min_repeat_ms=int(least_ms)
    )
    return kernel.name, float(np.median(timer(*kernel.tensors).results))


def _rank(task: ShippedTask, built: Sequence[_Built], seconds: Sequence[float]) -> float:
    pairs = [
        (task.records[b.record].median, s)
        for b, s in zip(built, seconds, strict=True)
        if b.variant.name == "replayed" and not np.isnan(s)
    ]
    return spearman(*zip(*pairs, strict=True)) if len(pairs) >= LEAST_RECORDS else float("nan")
