"""Printed compute DAGs by the hash and the shapes of their workloads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor.errors import DagError
from tvm_ext.transfer.ansor.workloads import named_dag
from tvm_ext.transfer.record import Workload, nested_tuple

_FIELDS = {"key": str, "shapes": list, "dag": str}


class DagLibrary:
    """Finds the DAG of a workload: a hash's among its texts, a name's by its registered function.

    A hash can't be turned back into a DAG, so a log with hashes needs the texts beside it.

    Parameters
    ----------
    tasks : iterable of mappings
        Each with ``key`` (the hash), ``shapes`` (what stands behind it in the workload's key),
        ``dag`` (the text that Ansor prints) and, if it is known, ``flops`` (Ansor's count).

    Raises
    ------
    DagError
        A task lacks one of these, or has it of another type.
    """

    def __init__(self, tasks: Iterable[Mapping[str, Any]] = ()) -> None:
        self._tasks: dict[tuple[str, Any], Mapping[str, Any]] = {}
        self._dags: dict[tuple[str, Any], ComputeDag] = {}
        for number, task in enumerate(tasks):
            for name, kind in _FIELDS.items():
                if not isinstance(task.get(name), kind):
                    raise DagError(
                        f"task {number}: {name} is {task.get(name)!r}, no {kind.__name__}"
                    )
            self._tasks[task["key"], nested_tuple(task["shapes"])] = task

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DagLibrary:
        """Read the tasks from a JSON file, a list of objects.

        Raises
        ------
        DagError
            The file is no such list.
        """
        try:
            tasks = json.loads(Path(path).read_text("utf-8"))
        except ValueError as error:
            raise DagError(f"{os.fspath(path)} isn't JSON: {error}") from None
        if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
            raise DagError(f"{os.fspath(path)} is no list of objects")
        return cls(tasks)

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
