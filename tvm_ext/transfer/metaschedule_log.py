"""The tuning records of a MetaSchedule JSON database, as TVM 0.27 writes them."""

from __future__ import annotations

import re
from typing import Any

from tvm_ext.errors import RecordError
from tvm_ext.transfer.json_line import is_int, is_ints, load_line
from tvm_ext.transfer.metaschedule_target import target_line
from tvm_ext.transfer.metaschedule_workloads import WorkloadFile
from tvm_ext.transfer.record import Record, Source, nested_tuple
from tvm_ext.transfer.run_times import FAILED_SECONDS, run_seconds

FAILED = "measurement_failed"
"""Building or running failed; the database doesn't say which."""
NOT_MEASURED = "not_measured"
"""The record was committed without times."""

START = re.compile(r"\[\s*\d+\s*,\s*\[\s*\[\s*\[")
"""How a record begins."""

_NO_RECORD = "not a MetaSchedule record"


def read_metaschedule_line(line: bytes, source: Source, workloads: WorkloadFile) -> Record:
    """The record of one line: ``[workload, [trace, seconds, target, arguments]]``.

    Parameters
    ----------
    line : bytes
    source : Source
    workloads : WorkloadFile
        Of the file beside.

    Raises
    ------
    RecordError
        The line is no such record, its workload isn't there, or a time isn't a positive number.
    """
    data = load_line(line, START)
    if not isinstance(data, list) or len(data) != 2 or not is_int(data[0]):
        raise RecordError(_NO_RECORD, "no list of a workload's number and a record")
    number, fields = data
    if not isinstance(fields, list) or len(fields) != 4:
        raise RecordError(_NO_RECORD, "the record isn't trace, seconds, target and arguments")
    trace, runs, target, arguments = fields
    error = _error(runs)
    return Record(
        format="metaschedule",
        version="",
        workload=workloads.workload(number, _arguments(arguments)),
        target=target_line(target),
        hardware=(),
        layout_rewrite=None,
        steps=_trace(trace),
        seconds=run_seconds(runs) if error is None else (),
        error=error,
        source=source,
    )


def _error(runs: Any) -> str | None:
    if runs is None:
        return NOT_MEASURED
    return FAILED if isinstance(runs, list) and FAILED_SECONDS in runs else None


def _arguments(arguments: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The dtype and shape of every argument."""
    if not isinstance(arguments, list):
        raise RecordError("bad arguments", "no list")
    found = []
    for place, argument in enumerate(arguments, 1):
        match argument:
            case ["TENSOR", str(dtype), shape] if is_ints(shape) and all(n > 0 for n in shape):
                found.append((dtype, tuple(shape)))
            case _:
                raise RecordError(
                    "bad arguments",
                    f"argument {place}; allowed: TENSOR, a dtype and a list of sizes above 0",
                )
    return tuple(found)


def _trace(trace: Any) -> tuple[Any, ...]:
    """The instructions (kind, inputs, attributes, outputs) and decisions (number, value)."""
    if not isinstance(trace, list) or len(trace) != 2:
        raise RecordError("malformed trace", "no list of instructions and decisions")
    instructions, decisions = trace
    if not isinstance(instructions, list) or not isinstance(decisions, list):
        raise RecordError("malformed trace", "no list of instructions and decisions")
    for place, instruction in enumerate(instructions):
        match instruction:
            case [str(), list(), list(), list()]:
                pass
            case _:
                raise RecordError("malformed trace", f"instruction {place} lacks a part")
    for place, decision in enumerate(decisions):
        match decision:
            case [int(number), _] if 0 <= number < len(instructions):
                pass
            case _:
                raise RecordError(
                    "malformed trace", f"decision {place} is of none of the instructions"
                )
    return nested_tuple(instructions), nested_tuple(decisions)
