"""Logs made of logs: the best records, without doubles, those of a kind, one log a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from tvm_ext.errors import LogError, OptionError
from tvm_ext.transfer.log_files import log_paths, read_lines
from tvm_ext.transfer.log_filter import RecordFilter
from tvm_ext.transfer.log_identity import Worth, identity, worth
from tvm_ext.transfer.log_lines import Progress
from tvm_ext.transfer.log_split import SPLITS, write_parts
from tvm_ext.transfer.log_spool import log_spool
from tvm_ext.transfer.log_summary import Defects
from tvm_ext.transfer.log_write import write_log
from tvm_ext.transfer.record import Format, Record, Workload

LogPath = str | PathLike[str]


@dataclass
class Outcome:
    """What a tool read and wrote.

    Attributes
    ----------
    read, written : int
        Records.
    files : int
        Logs written.
    skipped : Defects
        Lines that hold no usable record; none of them is written.
    """

    read: int = 0
    written: int = 0
    files: int = 1
    skipped: Defects = field(default_factory=Defects)


def best_records(
    paths: Iterable[LogPath], output: LogPath, top: int = 1, progress: Progress | None = None
) -> Outcome:
    """Write the fastest schedules of every workload on every target.

    Of a schedule that was measured several times, the measurement with the least median counts.
    Workloads keep the order in which they come first; the fastest stands first.

    Parameters
    ----------
    paths : iterable of path-like
        As `read_log` takes them, all of one format; each log is read once.
    output : path-like
        As `write_log` takes it: a file for Ansor's records, a new directory for MetaSchedule's.
    top : int
        Schedules of a workload on a target.
    progress : Progress, optional

    Raises
    ------
    OptionError
        `top` is below 1.
    LogError
        A log can't be read, formats are mixed, no record was measured, or the output can't be
        written.
    """
    if top < 1:
        raise OptionError(f"top {top!r}; allowed: 1 and above")
    outcome = Outcome()
    tasks: dict[tuple[Workload, str], dict[bytes, tuple[float, bytes]]] = {}
    for line, record in _records(paths, outcome, progress):
        if not record.valid:
            continue
        fastest = tasks.setdefault((record.workload, record.target), {})
        schedule = identity(record)
        if schedule not in fastest or record.median < fastest[schedule][0]:
            fastest[schedule] = record.median, line
        if len(fastest) > top:
            del fastest[max(fastest, key=lambda key: fastest[key][0])]
    outcome.written = write_log(
        Path(output),
        (
            (line, workload)
            for (workload, _), fastest in tasks.items()
            for _, line in sorted(fastest.values(), key=lambda found: found[0])
        ),
    )
    return outcome


def merge_logs(
    paths: Iterable[LogPath], output: LogPath, progress: Progress | None = None
) -> Outcome:
    """Write the records of several logs one behind the other, each schedule once.

    Records of the same workload, target (with its hardware parameters and rewriting of layouts) and
    steps are doubles. A measurement that succeeded is kept rather than one that failed, then the
    one with more runs, then the one with the lower median; the digest of the text decides between
    equals, so that the order of the logs changes nothing but the order of the records.

    Memory holds some 300 bytes for every schedule, and lines pass through a temporary file.

    Parameters
    ----------
    paths, output, progress
        As for `best_records`.

    Raises
    ------
    LogError
        As for `best_records`; failed records are kept, too.
    """
    outcome = Outcome()
    kept: dict[bytes, tuple[Worth, int, Workload]] = {}
    with log_spool() as spool:
        for line, record in _records(paths, outcome, progress):
            schedule, value = identity(record), worth(line, record)
            if schedule not in kept or value > kept[schedule][0]:
                kept[schedule] = value, spool.append(line), record.workload
        outcome.written = write_log(
            Path(output), ((spool.read(place), workload) for _, place, workload in kept.values())
        )
    return outcome


def filter_logs(
    paths: Iterable[LogPath], output: LogPath, keep: RecordFilter, progress: Progress | None = None
) -> Outcome:
    """Write the records that pass, in their order.

    Parameters
    ----------
    paths, output, progress
        As for `best_records`.
    keep : RecordFilter

    Raises
    ------
    LogError
        As for `best_records`, or no record passes.
    """
    outcome = Outcome()
    outcome.written = write_log(
        Path(output),
        (
            (line, record.workload)
            for line, record in _records(paths, outcome, progress)
            if keep.keeps(record)
        ),
    )
    return outcome


def split_logs(
    paths: Iterable[LogPath], directory: LogPath, by: str, progress: Progress | None = None
) -> Outcome:
    """Write one log for every target or every workload.

    Each has a name made of the target or the workload, and holds all its records in their order.

    Parameters
    ----------
    paths, progress
        As for `best_records`.
    directory : path-like
        New or empty.
    by : str
        ``target`` or ``workload``.

    Raises
    ------
    OptionError
        Another `by`.
    LogError
        As for `best_records`, or the directory isn't empty.
    """
    if by not in SPLITS:
        raise OptionError(f"by {by!r}; allowed: {', '.join(SPLITS)}")
    outcome = Outcome()
    records = _records(paths, outcome, progress)
    outcome.written, outcome.files = write_parts(Path(directory), records, by)
    return outcome


def _records(
    paths: Iterable[LogPath], outcome: Outcome, progress: Progress | None
) -> Iterator[tuple[bytes, Record]]:
    """The records of all logs with their lines, counted."""
    found: Format | None = None
    for path in log_paths(paths):
        for line, entry in read_lines(path, progress):
            if not isinstance(entry, Record):
                outcome.skipped.add(entry)
                continue
            found = found or entry.format
            if entry.format != found:
                raise LogError(
                    f"{entry.source}: a record of {entry.format} behind records of {found}; "
                    "allowed: logs of one format"
                )
            outcome.read += 1
            yield line, entry
