"""Wider vector loops for records whose own have one step, or fill only part of a register."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm_ext.transfer import ansor_step_types as ansor
from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor.stage import Iterator, SplitLoop, Stage
from tvm_ext.transfer.ansor.state import State

# The widest vector loop that is made of a loop that has no factor of its own: one AVX-512 register
# of float32, and a few narrower ones.
_WIDEST = 16


def with_vector_loops(
    dag: ComputeDag, steps: Sequence[ansor.Step]
) -> tuple[ansor.Step, ...] | None:
    """Give each vector loop of one step the next factor of its axis.

    Ansor's search marks the innermost loop of the last axis whatever its length. Where a split
    made it one step long, that split gets its factors anew: the innermost factor above 1 becomes
    the last one, and 1 takes its place. A split without such a factor gives the last place the
    largest divisor of its loop up to 16. Splits that follow it follow that, too.

    Parameters
    ----------
    dag : ComputeDag
    steps : sequence of Step

    Returns
    -------
    tuple of Step or None
        None if no vector loop of one step can be widened so.

    Raises
    ------
    ReplayError
        The steps don't fit the DAG.
    """
    return _with_splits(dag, steps, 2, _wider)


def with_full_vectors(
    dag: ComputeDag, steps: Sequence[ansor.Step], lanes: int
) -> tuple[ansor.Step, ...] | None:
    """Give vector loops shorter than a register as many steps as it has lanes.

    Such loops cost nothing on a CPU whose narrow instructions are as many a cycle as its wide ones
    have halves, where the record may come from; elsewhere they take part of the speed. What the
    last factor of a split gains the others lose, from the inside.

    Parameters
    ----------
    dag : ComputeDag
    steps : sequence of Step
    lanes : int
        Of float32 in a register.

    Returns
    -------
    tuple of Step or None
        None if no shorter vector loop can be filled up.

    Raises
    ------
    ReplayError
        The steps don't fit the DAG.
    """
    return _with_splits(dag, steps, lanes, lambda lengths, extent: _filled(lengths, extent, lanes))


def _with_splits(
    dag: ComputeDag,
    steps: Sequence[ansor.Step],
    enough: int,
    wider: Callable[[tuple[int, ...], int], tuple[int, ...]],
) -> tuple[ansor.Step, ...] | None:
    """The steps with other factors where a split makes a vector loop of fewer than `enough`."""
    state = State(dag)
    for step in steps:
        state.apply(step)
    widened = list(steps)
    for stage in state.stages:
        for change in _vector_splits(stage, enough):
            index = _source(steps, change)
            split = widened[index]
            if isinstance(split, ansor.Split) and split.from_inside and split.lengths[-1] < enough:
                extent = max(split.extent, change.source.extent)
                widened[index] = replace(split, lengths=wider(split.lengths, extent))
    found = tuple(widened)
    return None if found == tuple(steps) else found


def _vector_splits(stage: Stage, enough: int) -> list[SplitLoop]:
    """The splits whose innermost part, of fewer than `enough` steps, is the stage's vector loop."""
    vectors: set[Iterator] = {
        mark.iterator.last()
        for mark in stage.marks
        if mark.annotation is ansor.Annotation.VECTORIZE
    }
    return [
        change
        for change in stage.changes
        if isinstance(change, SplitLoop)
        and not change.source.reduction
        and change.from_inside
        and change.lengths[-1] < enough
        and change.parts[-1] in vectors
    ]


def _source(steps: Sequence[ansor.Step], change: SplitLoop) -> int:
    """The step that says the factors."""
    step = steps[change.step]
    return step.source if isinstance(step, ansor.FollowSplit) else change.step


def _wider(lengths: tuple[int, ...], extent: int) -> tuple[int, ...]:
    for place in reversed(range(len(lengths))):
        if lengths[place] > 1:
            return (*lengths[:place], *lengths[place + 1 :], lengths[place])
    width = max(n for n in range(1, _WIDEST + 1) if max(extent, 1) % n == 0)
    return (*lengths[:-1], width)


def _filled(lengths: tuple[int, ...], extent: int, lanes: int) -> tuple[int, ...]:
    if extent % lanes or lanes % lengths[-1]:
        return lengths
    rest = lanes // lengths[-1]
    others = list(lengths[:-1])
    for place in reversed(range(len(others))):
        common = math.gcd(others[place], rest)
        others[place] //= common
        rest //= common
    # What is left comes from the loop that the factors leave outside.
    if extent % (math.prod(others) * lanes):
        return lengths
    return (*others, lanes)
