"""A schedule trace without its shapes, ready for other kernels of its class and its anchor."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from tvm_ext.errors import TransferError
from tvm_ext.schedules.tuned import first_line
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.trace_run import REFUSED, TraceRun
from tvm_ext.transfer.trace_template_stages import Stages
from tvm_ext.transfer.trace_template_tiles import TILE_RULES
from tvm_ext.transfer.tune_space import tune_context


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

        Tiles become divisors of the new extents, by `rule` of `rescale`. Categorical decisions are
        kept, and compute locations as far as the loops exist. Where the epilogues differ, the last
        blocks of both play the same part and blocks before the last are inlined; a missing one is
        played by a copy of the anchor's result. A schedule for blocks of channels fits a function
        without them: the block's loop becomes the inner part of its last spatial one.

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
        loops = self.stages.loop_map(stages)
        if loops is None:
            raise TransferError(
                f"the anchor {stages.anchor} has the loops {stages.loops}; "
                f"the schedule is for {self.stages.anchor} with {self.stages.loops}"
            )
        schedule = Schedule(tvm.IRModule({"main": function}))
        names = self._match(schedule, stages)
        exact = self.stages.extents == stages.extents
        TraceRun(schedule, names, rule, loops, exact).run(self.trace)
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
        except REFUSED as error:
            raise TransferError(f"{postproc}: {first_line(error)}") from error
        if not done:
            raise TransferError(f"{postproc} refuses the schedule")
