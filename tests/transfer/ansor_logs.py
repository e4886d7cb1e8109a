"""Logs of Ansor's made of the records that come with the package."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.transfer.log_lines_of import ansor, write
from tvm_ext.transfer.ansor import ShippedTask, shipped_records


@cache
def tasks() -> tuple[ShippedTask, ...]:
    """All of them."""
    return shipped_records()


def task(operators: str, *, shape: tuple[int, ...] = (), padded: bool | None = None) -> ShippedTask:
    """The first task of these operators, as in ``conv2d_NCHWc_add``, whose input has this shape."""
    for found in tasks():
        name = found.operators.removeprefix("vm_mod_fused_nn_").removeprefix("contrib_")
        if name.rstrip("_0123456789") != operators:
            continue
        if shape and found.workload.arguments[0] != shape:
            continue
        if padded is None or padded == ("pad" in found.text):
            return found
    raise AssertionError(f"no task {operators} {shape}")


def workload_key(of: ShippedTask) -> str:
    """As a log has it."""
    return json.dumps([of.workload.key, *of.workload.arguments])


def line(of: ShippedTask, number: int = 0, **fields: Any) -> bytes:
    """A log's line of one of a task's records."""
    record = of.records[number]
    given = {"seconds": record.seconds, "steps": record.steps, "key": workload_key(of), **fields}
    return ansor(**given)


def with_tasks(path: Path, of: Iterable[ShippedTask], *lines: bytes) -> Path:
    """A log with its file of computations beside it."""
    described = [{"workload_key": workload_key(t), "dag": t.text, "flops": t.flops} for t in of]
    path.with_name(path.stem + ".tasks.json").write_text(json.dumps(described))
    return write(path, *lines)
