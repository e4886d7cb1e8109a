"""What a log holds: its records counted by task, target, version and defect."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from os import PathLike, fspath

from tvm_ext.transfer.log_files import read_lines
from tvm_ext.transfer.log_lines import Progress
from tvm_ext.transfer.record import Format, Record, Skipped, Source, Workload


@dataclass
class Tally:
    """How often something was found, and where first.

    Attributes
    ----------
    first : Source
    example : str
        What was found there.
    count : int
    """

    first: Source
    example: str = ""
    count: int = 0


@dataclass
class Defects:
    """The skipped lines of one or several logs, by reason."""

    reasons: dict[str, Tally] = field(default_factory=dict)

    def add(self, skipped: Skipped) -> None:
        """Count one."""
        first = Tally(skipped.source, skipped.detail)
        self.reasons.setdefault(skipped.reason, first).count += 1

    @property
    def total(self) -> int:
        """Skipped lines."""
        return sum(tally.count for tally in self.reasons.values())

    def lines(self) -> list[str]:
        """``3 lines: not JSON (first: log.json, line 7: ...)``, a line a reason."""
        return [
            f"{_lines(tally.count)}: {reason} (first: {tally.first}"
            f"{': ' + tally.example if tally.example else ''})"
            for reason, tally in self.reasons.items()
        ]


@dataclass
class TaskSummary:
    """The records of one workload on one target.

    Attributes
    ----------
    records, valid : int
        All, and those that were measured.
    best : float
        Least median in seconds; infinite when none was measured.
    """

    records: int = 0
    valid: int = 0
    best: float = math.inf

    def add(self, record: Record) -> None:
        """Count one."""
        self.records += 1
        self.valid += record.valid
        self.best = min(self.best, record.median)


@dataclass
class LogSummary:
    """What a log holds.

    Attributes
    ----------
    path : str
    format : str
        ``ansor`` or ``metaschedule``.
    valid : int
        Records that were measured.
    failed : dict
        Records whose measurement failed, by error.
    skipped : Defects
        Lines that hold no usable record.
    versions : Counter
        Records by version of the log's format.
    targets : Counter
        Records by target and kind of device.
    tasks : dict
        By workload and target, in the order in which they come first.
    """

    path: str
    format: Format = "ansor"
    valid: int = 0
    failed: dict[str, Tally] = field(default_factory=dict)
    skipped: Defects = field(default_factory=Defects)
    versions: Counter[str] = field(default_factory=Counter)
    targets: Counter[tuple[str, str]] = field(default_factory=Counter)
    tasks: dict[tuple[Workload, str], TaskSummary] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Valid and failed records."""
        return self.valid + sum(tally.count for tally in self.failed.values())

    def add(self, record: Record) -> None:
        """Count one."""
        self.format = record.format
        if record.error is None:
            self.valid += 1
        else:
            self.failed.setdefault(record.error, Tally(record.source)).count += 1
        self.versions[record.version] += 1
        self.targets[record.target, record.device] += 1
        self.tasks.setdefault((record.workload, record.target), TaskSummary()).add(record)


def summarize_log(path: str | PathLike[str], progress: Progress | None = None) -> LogSummary:
    """Read a log and count what it holds; memory grows with its tasks, not with its records.

    Raises
    ------
    LogError
        As `read_log`.
    """
    summary = LogSummary(fspath(path))
    for _, entry in read_lines(summary.path, progress):
        if isinstance(entry, Record):
            summary.add(entry)
        else:
            summary.skipped.add(entry)
    return summary


def _lines(count: int) -> str:
    return f"{count} line{'s' * (count != 1)}"
