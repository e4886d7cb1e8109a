"""Records written back as their log had them."""

from __future__ import annotations

import gzip
import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tvm_ext.errors import ArtifactError, LogError
from tvm_ext.files import replacing
from tvm_ext.transfer.metaschedule_workloads import RECORD_FILE, WORKLOAD_FILE, workload_lines
from tvm_ext.transfer.new_directory import new_directory
from tvm_ext.transfer.record import Source, Workload

Line = tuple[bytes, Workload]
"""A record's line, and the workload that it is of."""

_WORKLOAD_NUMBER = re.compile(rb"(\s*\[\s*)\d+")


def write_log(output: Path, lines: Iterable[Line]) -> int:
    """Write records of one format, whole or not at all.

    Ansor's go into one file, as gzip when its name ends with ``.gz``, each line byte for byte as it
    was. MetaSchedule's go into a new directory with the two files of a database; workloads are
    counted anew, and a line differs from what it was in its workload's number only.

    Returns
    -------
    int
        Records written.

    Raises
    ------
    LogError
        Nothing to write, or the output can't be written.
    """
    lines = iter(lines)
    first = next(lines, None)
    if first is None:
        raise LogError(f"no record to write into {output}")
    lines = itertools.chain([first], lines)
    if first[1].kind == "structural":
        with new_directory(output) as directory:
            return write_database(directory, lines)
    try:
        with replacing(output) as raw, _packed(output, raw) as stream:
            return _write_lines(stream, (line for line, _ in lines))
    except ArtifactError as error:
        raise LogError(str(error)) from error


def write_database(directory: Path, lines: Iterable[Line]) -> int:
    """Write the two files of a MetaSchedule database into a directory; the number of records."""
    numbers: dict[str, int] = {}
    modules: list[Source] = []

    def renumbered() -> Iterator[bytes]:
        for line, workload in lines:
            if workload.key not in numbers and workload.module is not None:
                numbers[workload.key] = len(modules)
                modules.append(workload.module)
            yield _WORKLOAD_NUMBER.sub(rb"\g<1>%d" % numbers[workload.key], line, count=1)

    with open(directory / RECORD_FILE, "wb") as stream:
        written = _write_lines(stream, renumbered())
    with open(directory / WORKLOAD_FILE, "wb") as stream:
        _write_lines(stream, workload_lines(modules))
    return written


def _write_lines(stream: BinaryIO | gzip.GzipFile, lines: Iterable[bytes]) -> int:
    """Write lines, and the newline that the last of a file may lack."""
    count = 0
    for line in lines:
        stream.write(line if line.endswith(b"\n") else line + b"\n")
        count += 1
    return count


@contextmanager
def _packed(output: Path, stream: BinaryIO) -> Iterator[BinaryIO | gzip.GzipFile]:
    if output.suffix != ".gz":
        yield stream
        return
    # Without a time stamp, the same records give the same file.
    with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        yield packed
