"""Variants of a record that today's compiler may like better than the record itself.

LLVM's loop vectoriser has changed since Ansor measured. Where a record's vector loop has one step,
it vectorises another loop, along which the data isn't contiguous, with gathers that take ten times
as long. It may help not to let it, and it may help to give the record a vector loop; or neither, so
that the variants have to be timed. Records of a CPU whose registers are narrower, or that is as
fast with half of one, may like whole ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.s_tir import Schedule
from tvm.target import Target

from tvm_ext.target import resolve
from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor.errors import ReplayError
from tvm_ext.transfer.ansor.replay import replay_steps
from tvm_ext.transfer.ansor.step_fields import parse_steps
from tvm_ext.transfer.ansor.vector_loops import with_full_vectors, with_vector_loops
from tvm_ext.transfer.ansor_step_types import Step

NO_LOOP_VECTORIZER = "-vectorize-loops:bool=false"
"""LLVM's option, in the form of a target's ``cl-opt``."""

# What a target says of its CPU.
_CPU_KEYS = ("kind", "mtriple", "mcpu", "mattr")


@dataclass(frozen=True, eq=False)
class Variant:
    """A schedule to time.

    Attributes
    ----------
    name : str
        ``replayed``, ``vector_loops`` or ``full_vectors``, then ``, no_loop_vectorizer`` where
        LLVM's is off.
    schedule : Schedule
        Of the DAG's function, named ``main``.
    target : Target
        To compile it for; its ``cl-opt`` may be the variant's own.
    """

    name: str
    schedule: Schedule
    target: Target


def repaired(dag: ComputeDag, steps: Sequence[Sequence[Any]], target: Target) -> list[Variant]:
    """The variants of a record that are worth timing, the record as it is first.

    Each is also there with LLVM's loop vectoriser off, unless the target has it off already. All
    compute the same. A variant that TensorIR refuses is left out.

    Parameters
    ----------
    dag : ComputeDag
        Of the record's own workload.
    steps : sequence
        The record's transform steps.
    target : Target
        An LLVM target.

    Returns
    -------
    list of Variant
        1 to 6.

    Raises
    ------
    ReplayError
        The record itself can't be replayed.
    """
    typed = parse_steps(steps)
    schedules = {"replayed": replay_steps(dag, typed).schedule}
    changes = {
        "vector_loops": with_vector_loops(dag, typed),
        "full_vectors": with_full_vectors(dag, typed, _lanes(target)),
    }
    for name, changed in changes.items():
        if changed is not None and (schedule := _replayed(dag, changed)) is not None:
            schedules[name] = schedule
    targets = {"": target}
    if NO_LOOP_VECTORIZER not in _options(target):
        targets[", no_loop_vectorizer"] = without_loop_vectorizer(target)
    return [
        Variant(name + suffix, schedule, its_target)
        for name, schedule in schedules.items()
        for suffix, its_target in targets.items()
    ]


def without_loop_vectorizer(target: Target) -> Target:
    """The target with LLVM's loop vectoriser off; what a schedule vectorises stays vectors."""
    options = [*_options(target), NO_LOOP_VECTORIZER]
    return Target({**target.export(), "cl-opt": options})


def _lanes(target: Target) -> int:
    """float32 values in a register of the target's."""
    kept = {key: value for key, value in target.export().items() if key in _CPU_KEYS}
    return resolve(kept).lanes


def _options(target: Target) -> list[str]:
    return [str(option) for option in target.attrs.get("cl-opt", ())]


def _replayed(dag: ComputeDag, steps: tuple[Step, ...]) -> Schedule | None:
    try:
        return replay_steps(dag, steps).schedule
    except ReplayError:
        return None
