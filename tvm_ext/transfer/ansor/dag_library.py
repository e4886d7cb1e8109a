"""Printed compute DAGs by the hash and the shapes of their workloads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tvm_ext.errors import RecordError
from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor.errors import DagError
from tvm_ext.transfer.ansor.workloads import named_dag
from tvm_ext.transfer.ansor_workload import read_workload
from tvm_ext.transfer.record import Workload, nested_tuple

_PARTS = {"key": str, "shapes": list, "dag": str}
_WHOLE = {"workload_key": str, "dag": str}


class DagLibrary:
    """Finds the DAG of a workload: a hash's among its texts, a name's by its registered function.

    A hash can't be turned back into a DAG, so a log with hashes needs the texts beside it.

    Parameters
    ----------
    tasks : iterable of mappings
        Each with ``dag`` (the text that Ansor prints), ``flops`` (Ansor's count, if it is known),
        and either ``workload_key`` (as the log has it) or its parts, ``key`` (the hash) and
        ``shapes`` (what stands behind it).

    Raises
    ------
    DagError
        A task lacks one of these, or has it of another type.
    """

    def __init__(self, tasks: Iterable[Mapping[str, Any]] = ()) -> None:
        self._tasks: dict[tuple[str, Any], Mapping[str, Any]] = {}
        self._dags: dict[tuple[str, Any], ComputeDag] = {}
        for number, task in enumerate(tasks):
            self._tasks[_key(number, task)] = task

    @classmethod
    def load(cls, *paths: str | os.PathLike[str]) -> DagLibrary:
        """Read the tasks from JSON files.

        Each is a list of objects, or an object whose ``tasks`` is such a list.

        Raises
        ------
        DagError
            A file is of another form, or one of its tasks is.
        """
        library = cls()
        for path in [os.fspath(path) for path in paths]:
            try:
                tasks = json.loads(Path(path).read_text("utf-8"))
            except (ValueError, RecursionError) as error:
                raise DagError(f"{path} isn't JSON: {error}") from None
            if isinstance(tasks, dict):
                tasks = tasks.get("tasks")
            if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
                raise DagError(f"{path} is no list of objects")
            try:
                library._tasks.update(cls(tasks)._tasks)
            except DagError as error:
                raise DagError(f"{path}: {error.reason}") from None
        return library

    def find(self, workload: Workload) -> ComputeDag:
        """The workload's DAG, parsed once.

        Raises
        ------
        DagError
            There is no text for its hash and shapes, its name isn't registered, or what there is
            can't be read.
        """
        key = (workload.key, workload.arguments)
        if key not in self._dags:
            self._dags[key] = self._read(workload)
        return self._dags[key]

    def _read(self, workload: Workload) -> ComputeDag:
        if workload.kind == "named":
            return named_dag(workload)
        task = self._tasks.get((workload.key, workload.arguments))
        if task is None:
            raise DagError("no text is known for this hash with these shapes")
        return ComputeDag.parse(task["dag"], workload.arguments, flops=task.get("flops"))


def _key(number: int, task: Mapping[str, Any]) -> tuple[str, Any]:
    """The hash of a task, and what stands behind it."""
    whole = "workload_key" in task
    for name, kind in (_WHOLE if whole else _PARTS).items():
        if not isinstance(task.get(name), kind):
            raise DagError(f"task {number}: {name} is {task.get(name)!r}, no {kind.__name__}")
    flops = task.get("flops")
    if flops is not None and type(flops) not in (int, float):
        raise DagError(f"task {number}: flops is {flops!r}, no number")
    if not whole:
        return task["key"], nested_tuple(task["shapes"])
    try:
        workload = read_workload(task["workload_key"])
    except RecordError as error:
        raise DagError(f"task {number}: {error}") from None
    return workload.key, workload.arguments
