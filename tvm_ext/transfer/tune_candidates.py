"""Schedules of other kernels, made to fit a kernel, the most similar first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log, prod
from typing import Any

import tvm
from tvm import tirx

from tvm_ext.errors import TransferError
from tvm_ext.schedules.tuned import trace_text
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.trace_template_stages import Stages
from tvm_ext.transfer.trace_template_tiles import TILE_RULES
from tvm_ext.transfer.tuned_record import TunedRecord, function_ops

# The fastest records of one donor kernel that are worth trying.
_RECORDS = 3


@dataclass(frozen=True)
class Candidate:
    """A schedule to try.

    Attributes
    ----------
    mod : IRModule
        Scheduled.
    trace : str
    predicted_s : float
        The donor's time, scaled by the iterations of the anchors.
    """

    mod: tvm.IRModule
    trace: str
    predicted_s: float


def transferred(
    function: tirx.PrimFunc, records: Iterable[TunedRecord], cpu: CpuTarget
) -> Iterator[Candidate]:
    """Candidates for a function from the records of others, without repeats.

    Kernels of the same class come before those with the same anchor but another epilogue, then
    nearer shapes before farther ones. Each record is tried with its tiles kept, then with its
    shares kept. Schedules that TensorIR refuses are left out.
    """
    stages, seen = Stages.of(function), set()
    for record in ranked(function, records):
        template = None
        for rule in TILE_RULES:
            try:
                template = template or record.template()
                schedule = template.apply(function, cpu, rule)
            except (TransferError, RuntimeError, ValueError):
                # One that doesn't fit is no candidate; the next may.
                continue
            text = trace_text(schedule.trace)
            if text not in seen:
                seen.add(text)
                scale = prod(stages.extents) / prod(record.stages.extents)
                yield Candidate(schedule.mod, text, record.seconds * scale)


def ranked(function: tirx.PrimFunc, records: Iterable[TunedRecord]) -> list[TunedRecord]:
    """The records that may fit a function, the most similar first.

    Of each donor kernel, only the three fastest records count.
    """
    stages, ops = Stages.of(function), function_ops(function)
    fitting = [r for r in records if not r.failed and r.stages.loops == stages.loops]
    by_kernel: dict[str, list[TunedRecord]] = {}
    for record in sorted(fitting, key=lambda r: r.seconds):
        kept = by_kernel.setdefault(record.workload, [])
        if len(kept) < _RECORDS:
            kept.append(record)

    def order(record: TunedRecord) -> tuple[Any, ...]:
        other = record.stages
        far = distance(stages.extents, other.extents)
        return record.ops != ops, other.anchor != stages.anchor, far, record.seconds

    return sorted((r for kept in by_kernel.values() for r in kept), key=order)


def distance(a: Sequence[int], b: Sequence[int]) -> float:
    """How far apart two shapes of equal rank are: the sum of the ratios' absolute logarithms."""
    return sum(abs(log(x / y)) for x, y in zip(a, b, strict=True))


def in_turns(queues: Sequence[Iterator[Any]]) -> Iterator[tuple[int, Any]]:
    """The first item of each queue, then the second of each, ...; with the queue's number.

    An item is made when it is asked for.
    """
    active = list(enumerate(queues))
    while active:
        for number, queue in list(active):
            try:
                item = next(queue)
            except StopIteration:
                active.remove((number, queue))
            else:
                yield number, item
