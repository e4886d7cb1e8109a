"""A trace of plain primitives in the form that fits other functions."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Instruction, LoopRV, SBlockRV, Trace

from tvm_ext.transfer.trace_run import TraceRun
from tvm_ext.transfer.trace_template_stages import LoopMap

# Instructions that do nothing if nobody uses what they find.
_QUERIES = ("GetSBlock", "GetLoops")


def canonical(trace: Trace, function: tirx.PrimFunc) -> Trace:
    """The same schedule of the same function, by instructions that need no constants.

    Splits by constants are sampled tiles with a decision, as MetaSchedule writes them, so that
    they can be rescaled and mutated; those that don't divide their loop stay. Blocks that
    instructions make are referred to by these, not by names, which depend on the function.
    Queries that nothing uses are left out.

    Raises
    ------
    TransferError
        TensorIR refuses an instruction: the trace is of another function.
    """
    schedule = Schedule(tvm.IRModule({"main": function}))
    TraceRun(schedule, {}, "tiles", LoopMap(), exact=True).run(_used(trace))
    return schedule.trace


def _used(trace: Trace) -> Trace:
    """The trace without queries whose outputs nothing uses."""
    needed: set[Any] = set()
    kept: list[Instruction] = []
    for instruction in reversed(trace.insts):
        if str(instruction.kind.name) in _QUERIES and needed.isdisjoint(instruction.outputs):
            continue
        kept.append(instruction)
        needed.update(v for v in _flat(instruction.inputs) if isinstance(v, (SBlockRV, LoopRV)))
    decisions = {i: d for i in kept if (d := trace.get_decision(i)) is not None}
    return Trace(kept[::-1], decisions)


def _flat(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        nested = isinstance(value, (list, tuple, tvm.ir.Array))
        found += _flat(value) if nested else [value]
    return found
