"""Measured schedules in a folder, as MetaSchedule's JSON database, safe against being killed.

``database_workload.json`` has one line ``[hash, module]`` a function, and
``database_tuning_record.json`` one line ``[number of the function's line, [trace, [seconds, ...],
target, arguments]]`` a measured candidate; one that failed has the time 1e10, as MetaSchedule
writes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir.meta_schedule.arg_info import ArgInfo
from tvm.s_tir.meta_schedule.database import MemoryDatabase, TuningRecord, Workload
from tvm.s_tir.schedule import Trace

from tvm_ext.errors import TuningError
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.tune_space import schedule_target
from tvm_ext.transfer.tuned_record import TunedRecord

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"
# What MetaSchedule writes for a failed candidate; anything from 1e9 on is one.
_FAILED, _LEAST_FAILED = 1e10, 1e9


class TuningStore:
    """The records of a folder; a context manager that keeps other runs out meanwhile.

    Each line is appended by one write, after the line that it refers to. What a killed run left
    of a line is cut off by the next one; a candidate that is there already isn't added again.

    Parameters
    ----------
    folder : path
        Made if it doesn't exist.

    Attributes
    ----------
    scratch : Path
        A folder for the time of the run.

    Raises
    ------
    TuningError
        Another run uses the folder, or a line isn't a record: which one.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._workloads: dict[str, int] = {}
        self._records: dict[tuple[str, str], TunedRecord] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR)
        except OSError as error:
            raise TuningError(f"can't use {self.folder}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise TuningError(f"another run is tuning into {self.folder}") from error
        self.scratch = self.folder / "scratch"
        try:
            self._read()
        except BaseException:
            os.close(self._lock)
            raise

    def _read(self) -> None:
        # A killed run leaves its own.
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        for name in (WORKLOADS, RECORDS):
            _cut_torn_line(self.folder / name)
        functions = list(read_workloads(self.folder / WORKLOADS))
        for index, (key, _) in enumerate(functions):
            self._workloads.setdefault(key, index)
        self._lines = len(functions)
        for record in read_records(self.folder / RECORDS, functions):
            self._records.setdefault((record.workload, record.trace), record)

    def __enter__(self) -> TuningStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.close(self._lock)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[TunedRecord]:
        return iter(self._records.values())

    def find(self, workload: str, trace: str) -> TunedRecord | None:
        """The record of a candidate, if it was measured before."""
        return self._records.get((workload, trace))

    def of(self, workload: str) -> list[TunedRecord]:
        """All records of a function, the fastest first."""
        found = [r for r in self._records.values() if r.workload == workload]
        return sorted(found, key=lambda record: record.seconds)

    def add(
        self, function: tirx.PrimFunc, trace: str, seconds: float, cpu: CpuTarget
    ) -> TunedRecord:
        """Keep a measured candidate, in the file too.

        Parameters
        ----------
        function : PrimFunc
        trace : str
        seconds : float
            Infinite if it failed.
        cpu : CpuTarget
        """
        workload = Workload(tvm.IRModule({"main": function}))
        key, module = workload.as_json()
        if known := self.find(key, trace):
            return known
        if key not in self._workloads:
            _append(self.folder / WORKLOADS, [key, module])
            self._workloads[key] = self._lines
            self._lines += 1
        record = TunedRecord(function, key, trace, seconds, str(cpu.llvm.get("mcpu", "generic")))
        times = [_FAILED if record.failed else seconds]
        entry = tuning_record(record, cpu, workload, times).as_json()
        entry[0] = json.loads(trace)
        _append(self.folder / RECORDS, [self._workloads[key], entry])
        self._records[key, trace] = record
        return record


def workload_key(function: tirx.PrimFunc) -> str:
    """By what a store knows a function."""
    return str(Workload(tvm.IRModule({"main": function})).as_json()[0])


def tuning_record(
    record: TunedRecord, cpu: CpuTarget, workload: Workload, times: Sequence[float]
) -> TuningRecord:
    """MetaSchedule's form of a record."""
    schedule = tvm.s_tir.Schedule(workload.mod)
    Trace.apply_json_to_schedule(json.loads(record.trace), schedule)
    arguments = ArgInfo.from_prim_func(record.function)
    return TuningRecord(schedule.trace, workload, list(times), schedule_target(cpu), arguments)


def memory_database(records: Sequence[TunedRecord], cpu: CpuTarget) -> MemoryDatabase:
    """A database in memory of those records that didn't fail."""
    database = MemoryDatabase()
    for record in records:
        if not record.failed:
            workload = database.commit_workload(tvm.IRModule({"main": record.function}))
            database.commit_tuning_record(tuning_record(record, cpu, workload, [record.seconds]))
    return database


def read_workloads(path: Path) -> Iterator[tuple[str, tirx.PrimFunc]]:
    """Key and function of each line.

    Raises
    ------
    TuningError
        A line isn't a workload.
    """
    for number, data in _lines(path):
        try:
            mod = Workload.from_json(data).mod
            (function,) = mod.functions.values()
        except (ValueError, TypeError, RuntimeError) as error:
            raise TuningError(f"{path}, line {number}: not a workload ({error})") from error
        yield str(data[0]), function


def read_records(
    path: Path, functions: Sequence[tuple[str, tirx.PrimFunc]]
) -> Iterator[TunedRecord]:
    """The records of a file whose workloads are `functions`.

    Raises
    ------
    TuningError
        A line isn't a record.
    """
    for number, data in _lines(path):
        try:
            index, (trace, times, target, _) = data
            key, function = functions[index]
            seconds = _median([float(t) for t in times or [_FAILED]])
            mcpu = str(target.get("mcpu", "generic"))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise TuningError(f"{path}, line {number}: not a tuning record ({error})") from error
        text = json.dumps(trace, separators=(",", ":"))
        yield TunedRecord(function, key, text, seconds, mcpu)


def _median(times: list[float]) -> float:
    middle = sorted(times)[len(times) // 2]
    return middle if 0 < middle < _LEAST_FAILED else float("inf")


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise TuningError(f"{path}, line {number}: not JSON ({error})") from error


def _append(path: Path, data: Any) -> None:
    line = (json.dumps(data, separators=(",", ":")) + "\n").encode()
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    try:
        # One write: a kill falls before or after it.
        os.write(handle, line)
    finally:
        os.close(handle)


def _cut_torn_line(path: Path) -> None:
    """Drop what follows the last line break: a line that was never finished."""
    if not path.exists():
        return
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        os.truncate(path, data.rfind(b"\n") + 1)
