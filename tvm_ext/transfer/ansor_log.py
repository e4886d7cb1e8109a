"""Ansor's JSON records, as TVM 0.8 to 0.18 wrote them: log versions v0.2 to v0.6."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any

from tvm_ext.errors import RecordError
from tvm_ext.transfer.ansor_steps import read_steps
from tvm_ext.transfer.ansor_workload import read_workload
from tvm_ext.transfer.json_line import check_text, is_int, is_ints, load_line
from tvm_ext.transfer.record import Record, Source
from tvm_ext.transfer.run_times import run_seconds

VERSIONS = ("v0.2", "v0.3", "v0.4", "v0.5", "v0.6")
ERRORS = MappingProxyType(
    {
        1: "instantiation_error",
        2: "compile_host_error",
        3: "compile_device_error",
        4: "runtime_device_error",
        5: "wrong_answer_error",
        6: "build_timeout_error",
        7: "run_timeout_error",
        8: "unknown_error",
    }
)
"""Ansor's error numbers; 0 is none."""

START = re.compile(r'\{\s*"[irv]"\s*:')
"""How a record begins."""


def read_ansor_line(line: bytes, source: Source) -> Record:
    """The record of one line.

    A record is ``{"i": [task, [[], steps]], "r": [seconds, error, all seconds, stamp], "v": ...}``,
    its task ``[key, target]``, then, by version, hardware parameters, target of the host, layout
    rewriting, and names of special inputs. The times of a record with an error are placeholders
    and aren't read.

    Raises
    ------
    RecordError
        The line is no such record, of another version, has steps that Ansor doesn't know or that
        lack a field, a shape that isn't integers, or a time that isn't a positive number.
    """
    data = load_line(line, START)
    if not isinstance(data, dict) or not {"i", "r", "v"} <= set(data):
        raise RecordError("not an Ansor record", "it needs the keys i, r and v")
    if data["v"] not in VERSIONS:
        allowed = f"{VERSIONS[0]} to {VERSIONS[-1]}"
        raise RecordError("unknown version", f"{data['v']!r}; allowed: {allowed}"[:120])
    task, steps = _parts(data["i"])
    error = _error(data["r"])
    hardware, layout_rewrite = _options(task)
    return Record(
        format="ansor",
        version=data["v"],
        workload=read_workload(task[0]),
        target=check_text(task[1].strip(), "bad target", "target"),
        hardware=hardware,
        layout_rewrite=layout_rewrite,
        steps=read_steps(steps),
        seconds=run_seconds(data["r"][0]) if error is None else (),
        error=error,
        source=source,
    )


def _parts(measured: Any) -> tuple[list[Any], Any]:
    """The task and the steps."""
    if not isinstance(measured, list) or len(measured) != 2:
        raise RecordError("not an Ansor record", "i is no list of a task and a state")
    task, state = measured
    if not isinstance(task, list) or len(task) < 2 or not all(type(t) is str for t in task[:2]):
        raise RecordError("not an Ansor record", "the task lacks its key or its target")
    if not isinstance(state, list) or len(state) != 2:
        raise RecordError("not an Ansor record", "the state is no list of stages and steps")
    return task, state[1]


def _options(task: list[Any]) -> tuple[tuple[int, ...], int | None]:
    """The hardware parameters and the rewriting of layouts, where the version has them."""
    hardware = task[2] if len(task) > 2 else []
    rewrite = task[4] if len(task) > 4 else None
    if not is_ints(hardware):
        raise RecordError("not an Ansor record", "the hardware parameters aren't integers")
    if rewrite is not None and not is_int(rewrite):
        raise RecordError("not an Ansor record", "the layout rewriting is no integer")
    return tuple(hardware), rewrite


def _error(result: Any) -> str | None:
    if not isinstance(result, list) or len(result) < 2:
        raise RecordError("not an Ansor record", "r is no list of times and an error number")
    number = result[1]
    if number == 0 and is_int(number):
        return None
    if not is_int(number) or number not in ERRORS:
        raise RecordError("unknown error number", f"{number!r}; allowed: 0 to {max(ERRORS)}"[:120])
    return ERRORS[number]
