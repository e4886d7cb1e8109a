"""The workload file of a MetaSchedule JSON database: hashes at once, modules when asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tvm_ext.errors import LogError, RecordError
from tvm_ext.transfer.log_lines import MODULE_LIMIT, LogLines
from tvm_ext.transfer.log_spool import log_spool
from tvm_ext.transfer.record import Skipped, Source, Workload

WORKLOAD_FILE = "database_workload.json"
RECORD_FILE = "database_tuning_record.json"

# ["hash", "module in base64"]: the module is most of the line, and isn't decoded here.
_LINE = re.compile(rb'\s*\[\s*"(\d+)"\s*,\s*"[A-Za-z0-9+/=]+"\s*\]\s*')
_REASON = "not a MetaSchedule workload"


class WorkloadFile:
    """The workloads of a database, by number.

    Only hashes are kept; the modules stay in the file.

    Parameters
    ----------
    path : str

    Attributes
    ----------
    skipped : list of Skipped
        The lines without a hash and a module in base64.

    Raises
    ------
    LogError
        The file can't be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.skipped: list[Skipped] = []
        self._keys: dict[int, str] = {}
        self._made: dict[int, Workload] = {}
        self._size = 0
        with LogLines(path, limit=MODULE_LIMIT) as lines:
            for number, line in lines:
                self._size = number
                error = line if isinstance(line, RecordError) else self._read(number, line)
                if error is not None:
                    self.skipped.append(Skipped(Source(path, number), error.reason, error.detail))

    def _read(self, number: int, line: bytes) -> RecordError | None:
        found = _LINE.fullmatch(line)
        if found is None:
            return RecordError(_REASON, "it needs a hash and a module in base64")
        self._keys[number] = found[1].decode()
        return None

    def workload(self, number: int, arguments: tuple[Any, ...]) -> Workload:
        """A workload; records of the same one share it.

        Parameters
        ----------
        number : int
            From 0, as records count.
        arguments : tuple
            (dtype, shape) of each: records have them, the file only as part of the module.

        Raises
        ------
        RecordError
            The file has no such line, or no workload can be read there.
        """
        line = number + 1
        if not 1 <= line <= self._size:
            raise RecordError("unknown workload", f"{number}; {self.path} has {self._size}")
        if line not in self._keys:
            raise RecordError("unreadable workload", f"{number}, line {line} of {self.path}")
        made = self._made.get(line)
        if made is None or made.arguments != arguments:
            made = Workload(self._keys[line], arguments, "structural", Source(self.path, line))
            self._made[line] = made
        return made


def record_file_of(path: str) -> str:
    """The file of records of a database that is named by its directory or its workload file."""
    if Path(path).is_dir():
        return str(Path(path) / RECORD_FILE)
    name = Path(path).name
    if name.startswith(WORKLOAD_FILE):
        return str(Path(path).with_name(name.replace(WORKLOAD_FILE, RECORD_FILE)))
    return path


def workload_file_of(path: str) -> str:
    """The workload file that belongs to a file of records: beside it, named alike.

    Raises
    ------
    LogError
        There is none.
    """
    name = Path(path).name
    alike = name.replace("tuning_record", "workload") if "tuning_record" in name else WORKLOAD_FILE
    for candidate in (alike, WORKLOAD_FILE):
        if (beside := Path(path).with_name(candidate)).is_file():
            return str(beside)
    raise LogError(
        f"{path} is a MetaSchedule log, whose workloads stand in a file of their own: "
        f"{alike} isn't beside it"
    )


def workload_lines(sources: Iterable[Source]) -> Iterator[bytes]:
    """The lines of workload files, in the order of `sources`.

    Modules can be large: they pass through a temporary file, not through memory.

    Raises
    ------
    LogError
        A line is no longer there.
    """
    wanted = list(sources)
    lines_of: dict[str, set[int]] = {}
    for source in wanted:
        lines_of.setdefault(source.path, set()).add(source.line)
    with log_spool() as spool:
        places: dict[Source, int] = {}
        for path, numbers in lines_of.items():
            with LogLines(path, limit=MODULE_LIMIT) as lines:
                for number, line in lines:
                    if number in numbers and isinstance(line, bytes):
                        places[Source(path, number)] = spool.append(line)
        for source in wanted:
            if source not in places:
                raise LogError(f"{source}: no such line; the file has changed")
            yield spool.read(places[source])


def load_module(workload: Workload) -> Any:
    """The IRModule of a MetaSchedule workload, read from its file.

    Raises
    ------
    LogError
        The workload has no module, as Ansor's, or its line is no longer in the file, or TVM can't
        read what stands there.
    """
    source = workload.module
    if source is None:
        raise LogError(f"workload {workload.key} has no module: only MetaSchedule's logs keep them")
    (line,) = workload_lines([source])
    key, text = json.loads(line)
    if key != workload.key:
        raise LogError(f"{source}: hash {key}, not {workload.key}: the file has changed")
    # TVM takes a second to import, and reading a log needs none of it.
    from tvm.s_tir.meta_schedule.database import Workload as Stored

    try:
        return Stored.from_json([key, text]).mod
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise LogError(f"{source}: TVM can't load the module: {error}") from error
