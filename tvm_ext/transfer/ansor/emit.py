"""The stages of a record, put in their places and their loops made, consumers first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm.s_tir import Schedule

from tvm_ext.transfer.ansor.errors import ReplayError
from tvm_ext.transfer.ansor.loop_structure import Line, loop_structure
from tvm_ext.transfer.ansor.loops import THREADS, apply_changes
from tvm_ext.transfer.ansor.refusal import refused
from tvm_ext.transfer.ansor.stage import At, Inline, Iterator, Stage
from tvm_ext.transfer.ansor.state import State
from tvm_ext.transfer.ansor_step_types import Annotation

_Loops = Mapping[Iterator, Any]


@dataclass(frozen=True, slots=True)
class Emitted:
    """What `emit` made beside the schedule.

    Attributes
    ----------
    structure : tuple of Line
        The loops before reductions get a stage for their start, which Ansor doesn't print.
    imperfect : tuple of int
        Steps whose factors don't divide the loop.
    """

    structure: tuple[Line, ...]
    imperfect: tuple[int, ...]


def emit(state: State) -> Emitted:
    """Schedule the state's stages.

    1. Inline what is inlined, so that what remains has all its readers.
    2. From the last stage to the first: put it at its reader's loop, change its loops, bind them
       to threads. A producer's part that a thread block shares is only known with the binds.
    3. Mark loops as parallel, vectorised or unrolled, before reductions are taken apart: what is
       left of them is no reduction any more, and TensorIR refuses it. A reduction's start, which
       comes from it, inherits the marks.
    4. Take reductions apart at their first loop, unit loops counted.

    Raises
    ------
    ReplayError
        What TensorIR refuses, with the step that asked for it.
    """
    schedule = state.schedule
    _inline(schedule, state.stages)
    loops: dict[Stage, _Loops] = {}
    imperfect: list[int] = []
    for stage in reversed(state.stages):
        if stage.placeholder or isinstance(stage.location, Inline):
            continue
        own = _place(schedule, stage, loops)
        applied = apply_changes(schedule, stage, own)
        loops[stage] = applied.loops
        imperfect += applied.imperfect
        _bind(schedule, stage, applied.loops)
    scheduled = [(s, loops[s]) for s in state.stages if s in loops]
    for stage, own_loops in scheduled:
        _mark(schedule, stage, own_loops)
    labels = {stage.block: stage.label for stage, _ in scheduled}
    structure = loop_structure(schedule.mod["main"], labels)
    for stage, own_loops in scheduled:
        _decompose(schedule, stage, own_loops)
    return Emitted(structure, tuple(sorted(imperfect)))


def _inline(schedule: Schedule, stages: list[Stage]) -> None:
    for stage in stages:
        if isinstance(stage.location, Inline):
            with refused(stage.location.step, "CI"):
                schedule.compute_inline(schedule.get_sblock(stage.block))


def _place(schedule: Schedule, stage: Stage, loops: Mapping[Stage, _Loops]) -> list[Any]:
    """Move the stage to where it is computed; its own loops."""
    block = schedule.get_sblock(stage.block)
    location = stage.location
    if isinstance(location, At):
        if location.target not in loops:
            raise ReplayError(
                location.step, "CA", f"{location.target.label} isn't computed after {stage.label}"
            )
        loop = loops[location.target][location.iterator.last()]
        with refused(location.step, "CA"):
            schedule.compute_at(block, loop, preserve_unit_loops=True)
    own = list(schedule.get_loops(block))
    return own[len(own) - len(stage.axes) :]


def _bind(schedule: Schedule, stage: Stage, loops: _Loops) -> None:
    for mark in stage.marks:
        if mark.annotation in THREADS:
            with refused(mark.step, mark.kind):
                schedule.bind(loops[mark.iterator.last()], THREADS[mark.annotation])


def _mark(schedule: Schedule, stage: Stage, loops: _Loops) -> None:
    kinds = {
        Annotation.UNROLL: schedule.unroll,
        Annotation.VECTORIZE: schedule.vectorize,
        Annotation.PARALLEL: schedule.parallel,
    }
    for mark in stage.marks:
        with refused(mark.step, mark.kind):
            loop = loops[mark.iterator.last()]
            if mark.annotation in kinds:
                kinds[mark.annotation](loop)
            elif mark.annotation is Annotation.TENSORIZE:
                raise ReplayError(mark.step, mark.kind, "the step names no instruction to use")
            elif mark.unroll:
                schedule.annotate(loop, "pragma_auto_unroll_max_step", mark.unroll)
                schedule.annotate(loop, "pragma_unroll_explicit", 1)
    for alignment in stage.alignments:
        with refused(alignment.step, "SA"):
            schedule.storage_align(
                schedule.get_sblock(stage.block), 0,
                alignment.axis, alignment.factor, alignment.offset,
            )  # fmt: skip


def _decompose(schedule: Schedule, stage: Stage, loops: _Loops) -> None:
    reductions = [iterator for iterator in stage.iterators if iterator.reduction]
    threads = {m.iterator.last() for m in stage.marks if m.annotation in THREADS}
    # Threads that reduce together do so by a primitive that wants the reduction whole.
    if reductions and not threads & set(reductions):
        with refused(None, "", f"the reduction of {stage.label}: "):
            schedule.decompose_reduction(schedule.get_sblock(stage.block), loops[reductions[0]])
