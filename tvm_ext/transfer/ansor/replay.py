"""A record's steps as a schedule of TensorIR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.s_tir import Schedule

from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor.emit import emit
from tvm_ext.transfer.ansor.loop_structure import Line
from tvm_ext.transfer.ansor.state import State
from tvm_ext.transfer.ansor.step_fields import parse_steps
from tvm_ext.transfer.ansor_step_types import Step


@dataclass(frozen=True, eq=False)
class Replayed:
    """A record taken over.

    Attributes
    ----------
    schedule : Schedule
        Of the DAG's function, named ``main``.
    structure : tuple of Line
        Its loops in the form of `loop_structure.parse_state`, before reductions get a stage for
        their start.
    imperfect_splits : tuple of int
        Indices of the steps whose factors don't divide the loop; a predicate guards its last round.
    """

    schedule: Schedule
    structure: tuple[Line, ...]
    imperfect_splits: tuple[int, ...]


def replay(dag: ComputeDag, steps: Sequence[Sequence[Any]]) -> Replayed:
    """Schedule a DAG as an Ansor record says.

    Parameters
    ----------
    dag : ComputeDag
        Of the record's own workload.
    steps : sequence
        The record's transform steps, such as ``["CI", 5]``, lists or tuples.

    Raises
    ------
    ReplayError
        A step is malformed, doesn't fit the DAG, or TensorIR refuses what it asks for; it has the
        step's index and the reason.
    """
    return replay_steps(dag, parse_steps(steps))


def replay_steps(dag: ComputeDag, steps: Sequence[Step]) -> Replayed:
    """As `replay`, of steps that have been read; raises `ReplayError`, too."""
    state = State(dag)
    for step in steps:
        state.apply(step)
    emitted = emit(state)
    return Replayed(state.schedule, emitted.structure, emitted.imperfect)
