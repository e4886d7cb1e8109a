"""A layer's tensor program under a schedule trace that was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from tvm_ext.dtypes import itemsize
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, register
from tvm_ext.target import CpuTarget

Shape = tuple[int, ...]
OPS_ATTRIBUTE = "tvm_ext.ops"


@dataclass(frozen=True)
class ProgramWorkload:
    """A fused operator group as TensorIR; `tvm_ext.transfer.tensor_program` makes it from a layer.

    Attributes
    ----------
    function : PrimFunc
        Unscheduled. Its arguments are the group's inputs, its constants, and the output.
    key : int
        Structural hash of `function`, by which workloads are compared.
    ops : tuple of str
        The operators of its kernel class, in order.
    out_shape : tuple of int
    flops : int
        Floating-point operations.
    """

    function: Any = field(compare=False, repr=False)
    key: int
    ops: tuple[str, ...]
    out_shape: Shape
    flops: int

    @classmethod
    def of(cls, function: tirx.PrimFunc, ops: Sequence[str], flops: int) -> ProgramWorkload:
        """The workload of a function whose last argument is its output."""
        # Traces look for blocks under this name, and databases keep the function with its class.
        function = function.with_attr({"global_symbol": "main", OPS_ATTRIBUTE: " ".join(ops)})
        shapes = buffer_shapes(function)
        return cls(
            function, int(tvm_ffi.structural_hash(function)), tuple(ops), shapes[-1][0], flops
        )

    @property
    def bytes(self) -> int:
        """Bytes of all arguments."""
        return sum(prod(s) * itemsize(dtype) for s, dtype in buffer_shapes(self.function))


def buffer_shapes(function: tirx.PrimFunc) -> list[tuple[Shape, str]]:
    """Shape and dtype of every argument of a function."""
    return [(tuple(int(d) for d in p.shape), str(p.dtype)) for p in function.params]


@register
class Tuned(Algorithm[ProgramWorkload]):
    """TVM's own implementation of a fused group under a trace of schedule primitives.

    Parameters of the plan: `record`, the name of the measurement that the trace comes from, and
    `trace`, MetaSchedule's JSON of it as text. The plan is complete with them: no database is
    needed to build from it. There is no default record, so the planner never offers it.
    """

    name: ClassVar[str] = "tuned"
    workload_type: ClassVar[type] = ProgramWorkload

    def supports(self, workload: ProgramWorkload, target: CpuTarget) -> Support:
        return YES

    def space(self, workload: ProgramWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {"record": (), "trace": ()}

    def default(self, workload: ProgramWorkload, target: CpuTarget) -> dict[str, Any]:
        return {"record": "", "trace": "[[], []]"}

    def cost(self, workload: ProgramWorkload, params: Params, target: CpuTarget) -> float:
        # The least that it can take: what it does take was measured, and stands in the plan.
        return max(
            workload.bytes / target.memory_bandwidth,
            workload.flops / (target.fma_peak * target.cores),
        )

    def check(self, workload: ProgramWorkload, params: Params, target: CpuTarget) -> str:
        if wrong := [key for key in params if key not in ("record", "trace")]:
            return f"algorithm {self.name} has no parameter {wrong[0]!r}; allowed: record, trace"
        for key in ("record", "trace"):
            if not isinstance(params.get(key), str):
                return f"{self.name}.{key} = {params.get(key)!r} is not a text"
        try:
            apply_trace(workload.function, params["trace"])
        except (ValueError, TypeError, RuntimeError) as error:
            return f"{self.name}.trace doesn't fit: {first_line(error)}"
        return ""

    def kernel(
        self, workload: ProgramWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        return apply_trace(workload.function, params["trace"])

    def pack(
        self,
        workload: ProgramWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        # Kept without copies: a constant of no dimensions would get one.
        return [np.asarray(w, order="C") for w in weights]


def apply_trace(function: tirx.PrimFunc, text: str) -> tirx.PrimFunc:
    """Schedule a function.

    Parameters
    ----------
    function : PrimFunc
        Unscheduled.
    text : str
        A trace's JSON, as `trace_text` gives it.

    Raises
    ------
    ValueError
        The text isn't the JSON of a trace.
    RuntimeError
        TensorIR refuses a step: the trace is for another function.
    """
    trace = json.loads(text)
    if not isinstance(trace, list) or len(trace) != 2:
        raise ValueError("a trace is a list of instructions and a list of decisions")
    schedule = Schedule(tvm.IRModule({"main": function}))
    Trace.apply_json_to_schedule(trace, schedule)
    return schedule.mod["main"]


def trace_text(trace: Trace) -> str:
    """A trace as compact JSON."""
    return json.dumps(trace.as_json(), separators=(",", ":"), default=lambda number: number.value)


def first_line(error: BaseException) -> str:
    """What an error of TVM says, without the program that it prints along."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for mark in ("Error message:", "The error is:"):
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark).strip()
    return lines[0] if lines else type(error).__name__
