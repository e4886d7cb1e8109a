"""Logs of either format, read record by record in constant memory."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tvm_ext.errors import LogError, RecordError
from tvm_ext.transfer import ansor_log, metaschedule_log
from tvm_ext.transfer.log_lines import STDIN, LogLines, Progress
from tvm_ext.transfer.metaschedule_workloads import (
    WorkloadFile,
    record_file_of,
    workload_file_of,
)
from tvm_ext.transfer.record import Entry, Format, Record, Skipped, Source

# The format is told by the first line that may be a record; before it stand a few damaged ones.
_LINES_TO_DETECT = 100
_BYTES_TO_DETECT = 100

_NumberedLine = tuple[int, bytes | RecordError]


def read_log(path: str | os.PathLike[str], progress: Progress | None = None) -> Iterator[Entry]:
    """Every record of a log, and every line that holds none, in order.

    Reads line by line: memory doesn't grow with the log.

    Parameters
    ----------
    path : path-like
        A file of Ansor's records, or of MetaSchedule's, whose workload file stands beside it; or
        the directory, or the workload file, of a MetaSchedule database. Plain or gzip, a file or a
        pipe; ``-`` is the standard input. The content tells the format.
    progress : Progress, optional
        Told now and then how many bytes have been read.

    Yields
    ------
    Record or Skipped
        Comments (``#``) and blank lines are neither.

    Raises
    ------
    LogError
        The log can't be opened or read, has no readable record (raised at its end), or lacks its
        workload file.
    """
    for _, entry in read_lines(os.fspath(path), progress):
        yield entry


def read_lines(path: str, progress: Progress | None = None) -> Iterator[tuple[bytes, Entry]]:
    """As `read_log`, each record with its line as it stands there."""
    path = record_file_of(path)
    skipped, first, found = 0, "", False
    for line, entry in _entries(path, progress):
        if isinstance(entry, Record):
            found = True
        else:
            skipped += 1
            first = first or str(entry)
        yield line, entry
    if not found:
        raise LogError(
            f"{path} has no readable record; {skipped} lines were skipped, the first: {first}"
            if skipped else f"{path} has no record"
        )  # fmt: skip


def log_paths(paths: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Every log that is named, once.

    A MetaSchedule database named by its directory, its workload file and its file of records is one
    log.
    """
    found: dict[str, str] = {}
    for path in (record_file_of(os.fspath(path)) for path in paths):
        found.setdefault(path if path == STDIN else str(Path(path).resolve()), path)
    return tuple(found.values())


def _entries(path: str, progress: Progress | None) -> Iterator[tuple[bytes, Entry]]:
    with LogLines(path, progress) as log:
        lines = iter(log)
        ahead: list[_NumberedLine] = []
        found: Format = "ansor"
        for number, line in itertools.islice(lines, _LINES_TO_DETECT):
            ahead.append((number, line))
            if isinstance(line, bytes) and (known := _format_of(line)):
                found = known
                break
        read: Callable[[bytes, Source], Record] = ansor_log.read_ansor_line
        if found == "metaschedule":
            workloads = WorkloadFile(workload_file_of(path))
            yield from ((b"", skipped) for skipped in workloads.skipped)

            def read(line: bytes, source: Source) -> Record:
                return metaschedule_log.read_metaschedule_line(line, source, workloads)

        for number, line in itertools.chain(ahead, lines):
            source = Source(path, number)
            try:
                if isinstance(line, RecordError):
                    raise line
                entry: Entry = read(line, source)
            except RecordError as error:
                yield b"", Skipped(source, error.reason, error.detail)
            except RecursionError:
                yield b"", Skipped(source, "nested too deep")
            else:
                yield line, entry


def _format_of(line: bytes) -> Format | None:
    """The format whose records begin so; None when neither's do, as in the rest of a cut line."""
    text = line[:_BYTES_TO_DETECT].decode(errors="replace").lstrip()
    if ansor_log.START.match(text):
        return "ansor"
    return "metaschedule" if metaschedule_log.START.match(text) else None
