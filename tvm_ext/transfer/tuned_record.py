"""One measured schedule of one tensor program."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from tvm_ext.schedules.tuned import OPS_ATTRIBUTE
from tvm_ext.transfer.kernel_class_ops import Ops
from tvm_ext.transfer.trace_template import TraceTemplate
from tvm_ext.transfer.trace_template_stages import Stages


@dataclass(frozen=True)
class TunedRecord:
    """A trace and how long the function took under it.

    Attributes
    ----------
    function : PrimFunc
        Unscheduled.
    workload : str
        Structural hash of the module of `function`.
    trace : str
        MetaSchedule's JSON, compact.
    seconds : float
        Median; infinite for a candidate that failed.
    target : str
        The mcpu that it was measured on.
    """

    function: Any = field(compare=False, repr=False)
    workload: str
    trace: str = field(repr=False)
    seconds: float
    target: str

    @property
    def name(self) -> str:
        """Twelve hexadecimal digits of the workload's and the trace's hash."""
        return record_name(self.workload, self.trace)

    @property
    def failed(self) -> bool:
        """Whether the candidate didn't build, run, or compute the right result."""
        return not math.isfinite(self.seconds)

    @property
    def ops(self) -> Ops:
        """The operators of its kernel class; names of blocks in databases of others."""
        return function_ops(self.function)

    @cached_property
    def stages(self) -> Stages:
        """The blocks of the function."""
        return Stages.of(self.function)

    def template(self) -> TraceTemplate:
        """The trace without its shapes."""
        schedule = Schedule(tvm.IRModule({"main": self.function}))
        Trace.apply_json_to_schedule(json.loads(self.trace), schedule)
        return TraceTemplate(schedule.trace, self.stages)


def record_name(workload: str, trace: str) -> str:
    """A short name for a trace of a workload, the same on every machine."""
    return hashlib.sha256(f"{workload} {trace}".encode()).hexdigest()[:12]


def function_ops(function: tirx.PrimFunc) -> Ops:
    """The operators that a function's attribute names; without it, its blocks."""
    attrs = function.attrs
    if attrs is not None and OPS_ATTRIBUTE in attrs:
        return tuple(str(attrs[OPS_ATTRIBUTE]).split())
    stages = Stages.of(function)
    return (*stages.prologue, stages.anchor, *stages.epilogue)
