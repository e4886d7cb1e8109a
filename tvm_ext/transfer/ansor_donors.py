"""Ansor's records as donors: replayed, and in the form that fits other functions."""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from tvm import tirx

from tvm_ext.errors import TransferError
from tvm_ext.schedules.tuned import OPS_ATTRIBUTE, trace_text
from tvm_ext.transfer.ansor import ComputeDag, DagError, DagLibrary, ReplayError, shipped_records
from tvm_ext.transfer.ansor.replay import replay_steps
from tvm_ext.transfer.ansor.step_fields import parse_steps
from tvm_ext.transfer.ansor.vector_loops import with_vector_loops
from tvm_ext.transfer.ansor_ops import stage_ops
from tvm_ext.transfer.log_files import read_log
from tvm_ext.transfer.record import Entry, Record, Workload
from tvm_ext.transfer.trace_canonical import canonical
from tvm_ext.transfer.tune_store import workload_key
from tvm_ext.transfer.tuned_record import TunedRecord

FindDag = Callable[[Workload], ComputeDag]
# Of each computation; no more than the three fastest are ever tried on a kernel by default.
KEPT = 3
SLOWER = f"slower than the {KEPT} fastest of its computation"


def ansor_records(
    entries: Iterable[Entry], find_dag: FindDag, skipped: Counter[str]
) -> list[TunedRecord]:
    """The fastest measured CPU records of each computation, replayed.

    Parameters
    ----------
    entries : iterable of Record or Skipped
        Of one log, as `read_log` yields them; streamed.
    find_dag : callable
        The DAG of a workload, or a `DagError` where there is none.
    skipped : Counter
        Is told the reason of each entry that isn't used.
    """
    kept: dict[Workload, list[tuple[float, int, Record]]] = {}
    for number, entry in enumerate(entries):
        if reason := _unusable(entry):
            skipped[reason] += 1
            continue
        assert isinstance(entry, Record)
        fastest = kept.setdefault(entry.workload, [])
        # A heap of the slowest first; of two alike, the earlier one stays.
        heapq.heappush(fastest, (-entry.median, -number, entry))
        if len(fastest) > KEPT:
            heapq.heappop(fastest)
            skipped[SLOWER] += 1
    found: list[TunedRecord] = []
    for workload, fastest in kept.items():
        try:
            dag = find_dag(workload)
        except DagError as error:
            skipped[f"computation: {error.reason}"] += len(fastest)
            continue
        function = donor_function(dag)
        key = workload_key(function)
        for _, _, record in sorted(fastest, key=lambda item: (-item[0], -item[1])):
            try:
                found.append(_replayed(record, dag, function, key))
            except ReplayError as error:
                skipped[f"{error.kind or 'replay'}: {error.reason}"] += 1
            except TransferError as error:
                skipped[str(error)] += 1
    return found


def log_records(path: str | os.PathLike[str], skipped: Counter[str]) -> list[TunedRecord]:
    """The records of a log of Ansor's.

    The computations behind its hashes are those of ``LOG.tasks.json`` beside ``LOG.json``, where
    there is one, and of the records that come with this package.

    Raises
    ------
    LogError
        The log can't be read, or has no readable record.
    DagError
        The file with the computations is of another form.
    """
    tasks = tasks_file(Path(path))
    beside = DagLibrary.load(tasks) if tasks.is_file() else DagLibrary()

    def find(workload: Workload) -> ComputeDag:
        try:
            return beside.find(workload)
        except DagError:
            return shipped_library().find(workload)

    return ansor_records(read_log(path), find, skipped)


def shipped_donors(skipped: Counter[str]) -> list[TunedRecord]:
    """The records that come with this package."""
    tasks = shipped_records()
    dags = {task.workload: task for task in tasks}
    entries = (record for task in tasks for record in task.records)
    return ansor_records(entries, lambda workload: dags[workload].dag, skipped)


@cache
def shipped_library() -> DagLibrary:
    """The computations of the records that come with this package."""
    return DagLibrary(
        {
            "key": task.workload.key, "shapes": list(task.workload.arguments),
            "dag": task.text, "flops": task.flops,
        }
        for task in shipped_records()
    )  # fmt: skip


def tasks_file(log: Path) -> Path:
    """Where the computations of a log's hashes stand: ``a.tasks.json`` for ``a.json[.gz]``."""
    return log.with_name(log.name.removesuffix(".gz").removesuffix(".json") + ".tasks.json")


def donor_function(dag: ComputeDag) -> tirx.PrimFunc:
    """A DAG's function as records keep functions, with its kernel class."""
    ops = stage_ops(stage.label for stage in dag.stages if not stage.placeholder)
    return dag.function.with_attr({"global_symbol": "main", OPS_ATTRIBUTE: " ".join(ops)})


def _unusable(entry: Entry) -> str:
    """Why an entry can't be a donor; empty if it may."""
    if not isinstance(entry, Record):
        return entry.reason
    if entry.format != "ansor":
        return "not a record of Ansor's"
    if not entry.valid:
        return "its measurement failed"
    return "" if entry.device == "cpu" else f"measured on a {entry.device.upper()}"


def _replayed(record: Record, dag: ComputeDag, function: tirx.PrimFunc, key: str) -> TunedRecord:
    """A record with vector loops of more than one step, which today's LLVM needs, if it can be."""
    steps = parse_steps(record.steps)
    schedule = None
    if (widened := with_vector_loops(dag, steps)) is not None:
        try:
            schedule = replay_steps(dag, widened).schedule
        except ReplayError:
            schedule = None
    if schedule is None:
        schedule = replay_steps(dag, steps).schedule
    trace = trace_text(canonical(schedule.trace, function))
    return TunedRecord(function, key, trace, record.median, _mcpu(record.target))


def _mcpu(target: str) -> str:
    """The CPU in Ansor's text of a target, such as ``llvm -keys=cpu -mcpu=core-avx2``."""
    words = (word.removeprefix("-mcpu=") for word in target.split() if word.startswith("-mcpu="))
    return next(words, "generic")
