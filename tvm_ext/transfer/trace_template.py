"""A schedule trace without its shapes, ready for other kernels of its class and its anchor."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Instruction, Trace

from tvm_ext.errors import TransferError
from tvm_ext.schedules.tuned import first_line
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.trace_template_stages import Stages
from tvm_ext.transfer.trace_template_tiles import TILE_RULES, rescale
from tvm_ext.transfer.tune_space import tune_context

# What TVM raises where an instruction does not apply.
_REFUSED = (RuntimeError, ValueError, IndexError, TypeError)


@dataclass(frozen=True)
class TraceTemplate:
    """A trace that found a good schedule of one function.

    Attributes
    ----------
    trace : Trace
        With its sampling decisions; postprocessing in it is made anew.
    stages : Stages
        Of the function that it schedules.
    """

    trace: Trace
    stages: Stages

    @classmethod
    def of(cls, trace: Trace, function: tirx.PrimFunc) -> TraceTemplate:
        """The template of a trace for `function`."""
        return cls(trace, Stages.of(function))

    def apply(self, function: tirx.PrimFunc, target: CpuTarget, rule: str = "tiles") -> Schedule:
        """Schedule another function of the same anchor.

        Perfect tiles become divisors of the new extents, by `rule` of `rescale`. Categorical
        decisions are kept, and compute locations as far as the loops exist. Where the epilogues
        differ, the last blocks of both play the same part and blocks before the last are inlined;
        a missing one is played by a copy of the anchor's result.

        Parameters
        ----------
        function : PrimFunc
            Unscheduled.
        target : CpuTarget
            For parallel, vector and unroll annotations, which TVM's postprocessors set.
        rule : str
            ``"tiles"`` or ``"shares"``.

        Returns
        -------
        Schedule
            With a complete trace of its own.

        Raises
        ------
        TransferError
            The anchors differ in their loops, or TensorIR refuses an instruction: which one, and
            why.
        """
        if rule not in TILE_RULES:
            raise TransferError(f"tile rule {rule!r}; allowed: {', '.join(TILE_RULES)}")
        stages = Stages.of(function)
        if stages.loops != self.stages.loops:
            raise TransferError(
                f"the anchor {stages.anchor} has the loops {stages.loops}; "
                f"the schedule is for {self.stages.anchor} with {self.stages.loops}"
            )
        schedule = Schedule(tvm.IRModule({"main": function}))
        names = self._match(schedule, stages)
        _Replay(rule).run(_renamed(self.trace, names), schedule)
        if stages.epilogue and not self.stages.epilogue:
            _inline_into_copy(schedule, stages.epilogue[-1])
        _postprocess(schedule, function, target)
        return schedule

    def _match(self, schedule: Schedule, stages: Stages) -> dict[str, str | None]:
        """The new block for each old one, None for what has none; prepares the new ones for it."""
        old = self.stages
        names: dict[str, str | None] = {old.anchor: stages.anchor}
        if len(old.prologue) == len(stages.prologue):
            names.update(zip(old.prologue, stages.prologue, strict=True))
        else:
            names.update(dict.fromkeys(old.prologue))
            _inline(schedule, stages.prologue)
        if len(old.epilogue) == len(stages.epilogue):
            names.update(zip(old.epilogue, stages.epilogue, strict=True))
            return names
        names.update(dict.fromkeys(old.epilogue))
        _inline(schedule, stages.epilogue[:-1])
        if old.epilogue:
            last = stages.epilogue[-1] if stages.epilogue else _copy(schedule, stages.anchor)
            names[old.epilogue[-1]] = last
        return names


class _Replay:
    """Applies a trace with decisions for the loops that it meets; remembers where it is."""

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self._at: Instruction | None = None

    def run(self, trace: Trace, schedule: Schedule) -> None:
        def decide(instruction: Any, inputs: Any, attrs: Any, decision: Any) -> Any:
            self._at = instruction
            if instruction.kind.name != "SamplePerfectTile" or decision is None:
                return decision
            extent = int(schedule.get(inputs[0]).extent)
            most = int(attrs[1])
            return rescale([int(x) for x in decision], extent, self._rule, most)

        try:
            trace.apply_to_schedule(schedule, True, decide)
        except _REFUSED as error:
            kind = self._at.kind.name if self._at is not None else "the trace"
            raise TransferError(f"{kind}: {first_line(error)}") from error


def _renamed(trace: Trace, names: dict[str, str | None]) -> Trace:
    """The trace for blocks of other names, without what it does to blocks that are missing."""
    made: list[Instruction] = []
    decisions: dict[Instruction, Any] = {}
    missing: list[Any] = []
    for instruction in trace.insts:
        kind, attrs = instruction.kind, list(instruction.attrs)
        if kind.name == "EnterPostproc":
            break
        gone = any(x.same_as(m) for x in _objects(instruction.inputs) for m in missing)
        if kind.name == "GetSBlock" and str(attrs[0]) in names:
            new = names[str(attrs[0])]
            gone = new is None
            attrs[0] = new
        # It asked whether something reads the anchor, and nothing depends on the answer.
        gone = gone or (kind.name == "GetConsumers" and not instruction.outputs)
        if gone:
            missing.extend(instruction.outputs)
            continue
        new_instruction = Instruction(kind, instruction.inputs, attrs, instruction.outputs)
        made.append(new_instruction)
        decision = trace.get_decision(instruction)
        if decision is not None:
            decisions[new_instruction] = decision
    return Trace(made, decisions)


def _objects(inputs: Sequence[Any]) -> list[Any]:
    return [x for x in inputs if isinstance(x, tvm.runtime.Object)]


def _inline(schedule: Schedule, names: Sequence[str]) -> None:
    for name in names:
        block = schedule.get_sblock(name)
        for primitive in (schedule.compute_inline, schedule.reverse_compute_inline):
            try:
                primitive(block)
                break
            except tvm.s_tir.ScheduleError:
                # It stays a loop nest of its own, which is slower but as right.
                continue


def _copy(schedule: Schedule, anchor: str) -> str:
    """A new last block that copies the anchor's result; its name."""
    copy = schedule.cache_write(schedule.get_sblock(anchor), 0, "global")
    return str(schedule.get(copy).name_hint)


def _inline_into_copy(schedule: Schedule, name: str) -> None:
    """Make the copy out of the anchor's cache, if the trace made one, compute the epilogue."""
    with suppress(tvm.s_tir.ScheduleError):
        schedule.reverse_compute_inline(schedule.get_sblock(name))


def _postprocess(schedule: Schedule, function: tirx.PrimFunc, target: CpuTarget) -> None:
    schedule.enter_postproc()
    for postproc in tune_context(function, target).space_generator.postprocs:
        try:
            done = postproc.apply(schedule)
        except _REFUSED as error:
            raise TransferError(f"{postproc}: {first_line(error)}") from error
        if not done:
            raise TransferError(f"{postproc} refuses the schedule")
