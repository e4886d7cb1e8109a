"""How many records of a log can be taken over, and why the others can't."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor.errors import DagError, ReplayError
from tvm_ext.transfer.ansor.replay import replay
from tvm_ext.transfer.record import Entry, Record, Source, Workload


@dataclass(frozen=True, slots=True)
class Failure:
    """A record that can't be taken over.

    Attributes
    ----------
    source : Source
    step : int or None
        The step that fails, from 0; None for a record whose DAG is missing, and for what no one
        step asks for.
    kind : str
        The step's kind; empty when there is none.
    reason : str
    """

    source: Source
    step: int | None
    kind: str
    reason: str

    def __str__(self) -> str:
        step = "" if self.step is None else f", step {self.step} ({self.kind})"
        return f"{self.source}{step}: {self.reason}"


@dataclass(slots=True)
class ReplayReport:
    """The counts of one file.

    Attributes
    ----------
    path : str
    replayed : int
        Records that became a schedule.
    failures : list of Failure
        Those that didn't.
    unmeasured : int
        Records whose measurement failed, which aren't tried.
    unreadable : int
        Lines that hold no record of Ansor's.
    """

    path: str
    replayed: int = 0
    failures: list[Failure] = field(default_factory=list)
    unmeasured: int = 0
    unreadable: int = 0

    @property
    def tried(self) -> int:
        """Records that were measured."""
        return self.replayed + len(self.failures)

    @property
    def reasons(self) -> Counter[tuple[str, str]]:
        """How many records failed, by kind of step and reason."""
        return Counter((failure.kind, failure.reason) for failure in self.failures)

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {self.replayed} of {self.tried} replayed; "
            f"{self.unmeasured} unmeasured, {self.unreadable} unreadable"
        ]
        for (kind, reason), count in self.reasons.most_common():
            lines.append(f"  {count} x {f'{kind}: ' if kind else ''}{reason}")
        return "\n".join(lines)


def replay_report(
    entries: Iterable[Entry], find_dag: Callable[[Workload], ComputeDag]
) -> tuple[ReplayReport, ...]:
    """Replay every measured record, without compiling; a report a file, in order.

    Parameters
    ----------
    entries : iterable of Record or Skipped
        Of one log or several, as `log_files.read_log` yields them; streamed.
    find_dag : callable
        The DAG of a workload, or a `DagError` where there is none: `DagLibrary.find`.
    """
    reports: dict[str, ReplayReport] = {}
    for entry in entries:
        path = entry.source.path
        report = reports.setdefault(path, ReplayReport(path))
        if not isinstance(entry, Record) or entry.format != "ansor":
            report.unreadable += 1
        elif not entry.valid:
            report.unmeasured += 1
        elif failure := _failure(entry, find_dag):
            report.failures.append(failure)
        else:
            report.replayed += 1
    return tuple(reports.values())


def _failure(record: Record, find_dag: Callable[[Workload], ComputeDag]) -> Failure | None:
    try:
        replay(find_dag(record.workload), record.steps)
    except DagError as error:
        return Failure(record.source, None, "", error.reason)
    except ReplayError as error:
        return Failure(record.source, error.step, error.kind, error.reason)
    return None
