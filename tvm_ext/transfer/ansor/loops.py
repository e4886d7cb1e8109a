"""The changes of one stage's loops, applied to its block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.s_tir import Schedule

from tvm_ext.transfer.ansor.refusal import refused
from tvm_ext.transfer.ansor.stage import FuseLoops, Iterator, ReorderLoops, SplitLoop, Stage
from tvm_ext.transfer.ansor_step_types import Annotation

THREADS = {
    Annotation.VTHREAD: "vthread.x",
    Annotation.BLOCK_X: "blockIdx.x",
    Annotation.THREAD_X: "threadIdx.x",
    Annotation.BLOCK_Y: "blockIdx.y",
    Annotation.THREAD_Y: "threadIdx.y",
    Annotation.BLOCK_Z: "blockIdx.z",
    Annotation.THREAD_Z: "threadIdx.z",
}
"""Annotations that bind a loop to threads, and the tag in TensorIR."""


@dataclass(frozen=True, slots=True)
class AppliedLoops:
    """The loops of a stage's iterators, and what had to give.

    Attributes
    ----------
    loops : dict
        By iterator.
    imperfect : tuple of int
        Steps whose factors don't divide the loop: its last round is guarded by a predicate.
    """

    loops: dict[Iterator, Any]
    imperfect: tuple[int, ...]


def apply_changes(schedule: Schedule, stage: Stage, loops: Sequence[Any]) -> AppliedLoops:
    """Split, reorder and fuse the loops of the stage's axes as its steps say.

    A factor larger than its loop is cut to it, as TE does; not that of a loop bound to threads,
    whose number the whole kernel shares.

    Raises
    ------
    ReplayError
        What TensorIR refuses, with the step.
    """
    bound = {mark.iterator for mark in stage.marks if mark.annotation in THREADS}
    current = dict(zip(stage.axes, loops, strict=True))
    imperfect: list[int] = []
    for change in stage.changes:
        with refused(change.step, change.kind):
            match change:
                case SplitLoop():
                    loop = current.pop(change.source)
                    factors, exact = _factors(int(schedule.get(loop).extent), change, bound)
                    if not exact:
                        imperfect.append(change.step)
                    current.update(zip(change.parts, schedule.split(loop, factors), strict=True))
                case ReorderLoops():
                    schedule.reorder(*[current[iterator] for iterator in change.order])
                case FuseLoops():
                    current[change.fused] = _fuse(schedule, stage, change, current)
    return AppliedLoops(current, tuple(imperfect))


def _factors(extent: int, change: SplitLoop, bound: set[Iterator]) -> tuple[list[int | None], bool]:
    """The factors of a split, and whether they divide the loop."""
    inside = change.from_inside
    parts = change.parts[1:] if inside else change.parts[:-1]
    pairs = list(zip(change.lengths, parts, strict=True))
    factors: list[int | None] = []
    exact = True
    for length, part in reversed(pairs) if inside else pairs:
        factor = length if part in bound else min(length, extent)
        exact &= extent % factor == 0
        factors.append(factor)
        extent = -(-extent // factor)
    return ([None, *reversed(factors)] if inside else [*factors, None]), exact


def _fuse(schedule: Schedule, stage: Stage, change: FuseLoops, current: dict[Iterator, Any]) -> Any:
    if not change.parts:
        # A stage without axes: a loop of one step around its block.
        first = next(iter(current.values()), schedule.get_sblock(stage.block))
        return schedule.add_unit_loop(first)
    loops = [current.pop(part) for part in change.parts]
    return loops[0] if len(loops) == 1 else schedule.fuse(*loops)
