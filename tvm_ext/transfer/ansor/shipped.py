"""Ansor's records that come with this package, with all that is needed to replay them.

The folder ``tuning_logs/ansor/`` has a file ``<name>.jsonl.gz`` a log. Its first line is the
header: ``schema``, ``network``, ``target``, and where the records come from, ``tuner``,
``machine``, ``threads`` and ``log``. Then each task has a line with ``workload_key``,
``operators``, ``weight``, ``flops`` and ``dag``, before the lines of its records, the fastest
first: ``line`` in the log, ``version``, ``steps`` and ``seconds``.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from tvm_ext.errors import LogError, RecordError
from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor_steps import read_steps
from tvm_ext.transfer.ansor_workload import read_workload
from tvm_ext.transfer.record import Record, Source, Workload
from tvm_ext.transfer.run_times import run_seconds

SCHEMA_VERSION = 1
HEADER = {
    "schema": int, "network": str, "target": str, "tuner": str, "machine": str, "threads": int,
    "log": str,
}  # fmt: skip
TASK = {"workload_key": str, "operators": str, "weight": int, "flops": float, "dag": str}
RECORD = {"line": int, "version": str, "steps": list, "seconds": list}


@dataclass(frozen=True)
class Origin:
    """Where records come from.

    Attributes
    ----------
    network, target : str
        What was tuned, and for what: Ansor's text of the target.
    tuner, machine : str
    threads : int
        That each kernel was measured with.
    log : str
        The name of the log, which may not be there any more.
    """

    network: str
    target: str
    tuner: str
    machine: str
    threads: int
    log: str


@dataclass(frozen=True)
class ShippedTask:
    """A task and its best records.

    Attributes
    ----------
    origin : Origin
    workload : Workload
    operators : str
        The fused operators, as the tuner named the task.
    weight : int
        How often the network has it.
    flops : float
        Ansor's count of operations.
    text : str
        The compute DAG as Ansor printed it.
    records : tuple of Record
        The fastest first.
    """

    origin: Origin
    workload: Workload
    operators: str
    weight: int
    flops: float
    text: str
    records: tuple[Record, ...]

    @cached_property
    def dag(self) -> ComputeDag:
        """The compute DAG, for `replay`."""
        return ComputeDag.parse(self.text, self.workload.arguments, flops=self.flops)


def shipped_records() -> tuple[ShippedTask, ...]:
    """All tasks that come with this package, log by log.

    Raises
    ------
    LogError
        As `read_shipped`.
    """
    folder = files("tvm_ext.tuning_logs") / "ansor"
    found: list[ShippedTask] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".jsonl.gz"):
            with as_file(entry) as path:
                found += read_shipped(path)
    return tuple(found)


def read_shipped(path: str | os.PathLike[str]) -> list[ShippedTask]:
    """The tasks of one file.

    Raises
    ------
    LogError
        It can't be read, is of another schema, or a line lacks a field or has it of another type.
    """
    name = os.fspath(path)
    try:
        lines = gzip.decompress(Path(path).read_bytes()).decode().splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise LogError(f"{name} can't be read: {error}") from error
    tasks: list[ShippedTask] = []
    origin: Origin | None = None
    for number, line in enumerate(lines, 1):
        source = Source(name, number)
        try:
            data = _object(line)
            if origin is None:
                origin = _origin(data)
            elif "workload_key" in data:
                tasks.append(_task(data, origin))
            elif tasks:
                record = _record(data, tasks[-1], source)
                tasks[-1] = replace(tasks[-1], records=(*tasks[-1].records, record))
            else:
                raise RecordError("bad task", "a record stands before the first task")
        except RecordError as error:
            raise LogError(f"{source}: {error}") from error
    if origin is None:
        raise LogError(f"{name} has no header")
    return tasks


def _object(line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordError("not JSON", str(error)) from error
    if not isinstance(data, dict):
        raise RecordError("not JSON", "a line is an object")
    return data


def _origin(data: dict[str, Any]) -> Origin:
    if data.get("schema") != SCHEMA_VERSION:
        raise RecordError(
            "unknown schema", f"{data.get('schema')!r}; allowed: {SCHEMA_VERSION}"[:120]
        )
    _check(data, HEADER, "bad header")
    return Origin(**{key: data[key] for key in HEADER if key != "schema"})


def _task(data: dict[str, Any], origin: Origin) -> ShippedTask:
    _check(data, TASK, "bad task")
    return ShippedTask(
        origin, read_workload(data["workload_key"]), data["operators"], data["weight"],
        float(data["flops"]), data["dag"], (),
    )  # fmt: skip


def _record(data: dict[str, Any], task: ShippedTask, source: Source) -> Record:
    _check(data, RECORD, "bad record")
    return Record(
        format="ansor", version=data["version"], workload=task.workload, target=task.origin.target,
        hardware=(), layout_rewrite=None, steps=read_steps(data["steps"]),
        seconds=run_seconds(data["seconds"]), error=None, source=source,
    )  # fmt: skip


def _check(data: dict[str, Any], fields: Mapping[str, type], reason: str) -> None:
    for key, kind in fields.items():
        allowed = (int, float) if kind is float else (kind,)
        if type(data.get(key)) not in allowed:
            raise RecordError(reason, f"{key} is {data.get(key)!r}, no {kind.__name__}"[:120])
    if unknown := sorted(data.keys() - fields.keys()):
        raise RecordError(reason, f"it has no field {unknown[0]!r}; allowed: {', '.join(fields)}")
