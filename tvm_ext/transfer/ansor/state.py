"""A record's steps read as Ansor does, before anything is scheduled.

TensorIR can't apply them in a record's order: Ansor splits a stage's loops, moves the stage into
another and then fuses the other's loops, where TensorIR needs each stage in its final place before
its loops change. So the loops' changes are only noted, stage by stage, and `emit` applies them.
Steps that make new stages are applied at once, since later steps count those stages too.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import tvm
from tvm.s_tir import Schedule

from tvm_ext.transfer import ansor_step_types as ansor
from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor.errors import ReplayError
from tvm_ext.transfer.ansor.new_stages import cache_read, cache_write, fresh_stage, rfactor
from tvm_ext.transfer.ansor.refusal import refused
from tvm_ext.transfer.ansor.stage import Alignment, At, Inline, Iterator, Mark, Root, Stage


class State:
    """The stages of a DAG, and the steps so far.

    Attributes
    ----------
    schedule : Schedule
        Of the DAG's function; only steps that make stages have changed it.
    stages : list of Stage
        In the order that steps count by.
    """

    def __init__(self, dag: ComputeDag) -> None:
        self.schedule = Schedule(tvm.IRModule({"main": dag.function}))
        self.stages = [
            Stage(s.label, s.name, True) if s.placeholder
            else fresh_stage(self.schedule, s.label, self.schedule.get_sblock(s.name))
            for s in dag.stages
        ]  # fmt: skip
        self._steps: list[ansor.Step] = []

    def apply(self, step: ansor.Step) -> None:
        """Take the next step.

        Raises
        ------
        ReplayError
            It names a stage, iterator or step that there isn't, or doesn't fit the stage.
        """
        stage = self._stage(step.stage)
        if stage.placeholder and not isinstance(step, ansor.CacheRead):
            raise self._error(step, f"stage {step.stage}, {stage.label}, is a placeholder")
        self._HANDLERS[type(step)](self, step, stage)
        self._steps.append(step)

    @property
    def _index(self) -> int:
        return len(self._steps)

    def _error(self, step: ansor.Step, reason: str) -> ReplayError:
        return ReplayError(self._index, step.kind, reason)

    def _stage(self, number: int) -> Stage:
        if number >= len(self.stages):
            raise ReplayError(
                self._index, "", f"there is no stage {number}; allowed: 0 to {len(self.stages) - 1}"
            )
        return self.stages[number]

    def _iterator(self, step: ansor.Step, stage: Stage, number: int) -> Iterator:
        if number >= len(stage.iterators):
            raise self._error(
                step, f"{stage.label} has {len(stage.iterators)} iterators, none is {number}"
            )
        return stage.iterators[number]

    def _lengths(self, step: ansor.Step, number: int) -> tuple[int, ...]:
        """The lengths of an earlier split."""
        source = self._steps[number] if number < self._index else None
        if not isinstance(source, ansor.Split):
            raise self._error(step, f"step {number} is no split before it")
        return source.lengths

    def _split(self, step: ansor.Split, stage: Stage) -> None:
        iterator = self._iterator(step, stage, step.iterator)
        # A record of another DAG, or wrongly inferred extents. Ansor writes 0 or 1 where it doesn't
        # know the extent, and inside another stage the part that is computed there.
        known = isinstance(stage.location, Root) and iterator.extent and step.extent > 1
        if known and step.extent != iterator.extent:
            raise self._error(
                step,
                f"{iterator.name} of {stage.label} is {iterator.extent} long, "
                f"in the record {step.extent}",
            )
        stage.split(self._index, step.kind, step.iterator, step.lengths, step.from_inside)

    def _follow(self, step: ansor.FollowSplit, stage: Stage) -> None:
        lengths = self._lengths(step, step.source)
        if step.levels > len(lengths):
            raise self._error(
                step, f"{step.levels} lengths of a split that has {len(lengths)}; allowed: no more"
            )
        kept = step.levels - 1
        self._iterator(step, stage, step.iterator)
        followed = (*lengths[:kept], prod(lengths[kept:]))
        stage.split(self._index, step.kind, step.iterator, followed, True)

    def _follow_fused(self, step: ansor.FollowFusedSplit, stage: Stage) -> None:
        sources = [self._lengths(step, number) for number in step.sources]
        if any(step.level >= len(lengths) for lengths in sources):
            raise self._error(step, f"a split that it follows has no level {step.level}")
        self._iterator(step, stage, step.iterator)
        length = prod(lengths[step.level] for lengths in sources)
        stage.split(self._index, step.kind, step.iterator, (length,), step.from_inside)

    def _reorder(self, step: ansor.Reorder, stage: Stage) -> None:
        if sorted(step.order) != list(range(len(stage.iterators))):
            raise self._error(
                step, f"{list(step.order)} is no order of {len(stage.iterators)} iterators"
            )
        stage.reorder(self._index, step.kind, step.order)

    def _fuse(self, step: ansor.Fuse, stage: Stage) -> None:
        numbers = step.iterators
        for number in numbers:
            self._iterator(step, stage, number)
        if numbers and list(numbers) != list(range(numbers[0], numbers[0] + len(numbers))):
            raise self._error(step, f"iterators {list(numbers)} don't follow each other")
        stage.fuse(self._index, step.kind, numbers)

    def _annotate(self, step: ansor.Annotate, stage: Stage) -> None:
        iterator = self._iterator(step, stage, step.iterator)
        stage.marks.append(Mark(self._index, step.kind, iterator, step.annotation))

    def _pragma(self, step: ansor.Pragma, stage: Stage) -> None:
        # Ansor passes over a pragma on a stage without loops, and so does this.
        if step.iterator < len(stage.iterators):
            iterator = stage.iterators[step.iterator]
            none = ansor.Annotation.NONE
            stage.marks.append(Mark(self._index, step.kind, iterator, none, step.unroll))

    def _compute_at(self, step: ansor.ComputeAt, stage: Stage) -> None:
        target = self._stage(step.target)
        if target is stage or target.placeholder:
            raise self._error(step, f"{stage.label} can't be computed inside {target.label}")
        iterator = self._iterator(step, target, step.iterator)
        stage.location = At(self._index, target, iterator)

    def _compute_inline(self, step: ansor.ComputeInline, stage: Stage) -> None:
        stage.location = Inline(self._index)

    def _compute_root(self, step: ansor.ComputeRoot, stage: Stage) -> None:
        stage.location = Root()

    def _cache_read(self, step: ansor.CacheRead, stage: Stage) -> None:
        readers = [self._stage(number) for number in step.readers]
        if not readers or any(reader.placeholder for reader in readers):
            raise self._error(step, f"stages {list(step.readers)} read nothing")
        with refused(self._index, step.kind):
            copy = cache_read(self.schedule, stage, readers, step.scope)
        self.stages.insert(step.stage + 1, copy)

    def _cache_write(self, step: ansor.CacheWrite, stage: Stage) -> None:
        self._check_untouched(step, stage)
        with refused(self._index, step.kind):
            computing, copy = cache_write(self.schedule, stage, step.scope)
        copy.location = stage.location
        self.stages[step.stage : step.stage + 1] = [computing, copy]

    def _rfactor(self, step: ansor.Rfactor, stage: Stage) -> None:
        iterator = self._iterator(step, stage, step.iterator)
        if not iterator.reduction:
            raise self._error(step, f"{iterator.name} of {stage.label} isn't reduced")
        if stage.location != Root():
            raise self._error(step, f"{stage.label} isn't computed by itself")
        self._check_not_target(step, stage)
        spatial = sum(not axis.reduction for axis in stage.axes)
        if step.position != spatial:
            raise self._error(
                step, f"the new axis is to be axis {step.position}; allowed: the last, {spatial}"
            )
        with refused(self._index, step.kind):
            factored, final = rfactor(self.schedule, stage, step.iterator)
        self.stages[step.stage : step.stage + 1] = [factored, final]

    def _storage_align(self, step: ansor.StorageAlign, stage: Stage) -> None:
        iterator = self._iterator(step, stage, step.iterator)
        if iterator not in stage.axes or iterator.reduction:
            raise self._error(step, f"{iterator.name} of {stage.label} is no axis of its output")
        axis = stage.axes.index(iterator)
        stage.alignments.append(Alignment(self._index, axis, step.factor, step.offset))

    def _check_untouched(self, step: ansor.Step, stage: Stage) -> None:
        if stage.touched:
            raise self._error(step, f"the loops of {stage.label} have been changed before")
        self._check_not_target(step, stage)

    def _check_not_target(self, step: ansor.Step, stage: Stage) -> None:
        for other in self.stages:
            if isinstance(other.location, At) and other.location.target is stage:
                raise self._error(step, f"{other.label} is computed inside {stage.label}")

    _HANDLERS: dict[type[ansor.Step], Callable[[State, Any, Stage], None]] = {  # noqa: RUF012
        ansor.Split: _split,
        ansor.FollowSplit: _follow,
        ansor.FollowFusedSplit: _follow_fused,
        ansor.Reorder: _reorder,
        ansor.Fuse: _fuse,
        ansor.Annotate: _annotate,
        ansor.Pragma: _pragma,
        ansor.ComputeAt: _compute_at,
        ansor.ComputeInline: _compute_inline,
        ansor.ComputeRoot: _compute_root,
        ansor.CacheRead: _cache_read,
        ansor.CacheWrite: _cache_write,
        ansor.Rfactor: _rfactor,
        ansor.StorageAlign: _storage_align,
    }
