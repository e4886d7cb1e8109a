"""Schedules of other kernels, made to fit a kernel, the most similar first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, log, prod
from typing import Any

import tvm
from tvm import tirx

from tvm_ext.errors import TransferError, TuningError
from tvm_ext.schedules.tuned import trace_text
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.trace_template_stages import LoopMap, Stages
from tvm_ext.transfer.trace_template_tiles import TILE_RULES
from tvm_ext.transfer.tuned_record import TunedRecord, function_ops

# The fastest records of one donor kernel that are worth trying, if nothing ranks them.
RECORDS_PER_KERNEL = 3


@dataclass(frozen=True)
class Candidate:
    """A schedule to try.

    Attributes
    ----------
    mod : IRModule
        Scheduled.
    trace : str
    predicted_s : float
        The donor's time, scaled by the iterations of the anchors; infinite where its data has
        another layout, so that only a measurement tells.
    """

    mod: tvm.IRModule
    trace: str
    predicted_s: float


def transferred(
    function: tirx.PrimFunc, records: Iterable[TunedRecord], cpu: CpuTarget,
    records_per_kernel: int = RECORDS_PER_KERNEL,
) -> Iterator[Candidate]:  # fmt: skip
    """Candidates for a function from the records of others, without repeats.

    Kernels of the same class come before those with the same anchor but another epilogue, then
    nearer shapes before farther ones. Each record is tried with its tiles kept, then with its
    shares kept. Schedules that TensorIR refuses are left out.

    Parameters
    ----------
    function : PrimFunc
        Unscheduled.
    records : iterable of TunedRecord
    cpu : CpuTarget
    records_per_kernel : int
        So many of each donor kernel are tried, the fastest: more of them give a pre-screening more
        to choose from.

    Raises
    ------
    TuningError
        `records_per_kernel` isn't positive.
    """
    stages, seen = Stages.of(function), set()
    for record in ranked(function, records, records_per_kernel):
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
                yield Candidate(schedule.mod, text, _predicted(record, stages))


def _predicted(record: TunedRecord, stages: Stages) -> float:
    if record.stages.loop_map(stages) != LoopMap():
        return inf
    return record.seconds * prod(stages.extents) / prod(record.stages.extents)


def ranked(
    function: tirx.PrimFunc, records: Iterable[TunedRecord],
    records_per_kernel: int = RECORDS_PER_KERNEL,
) -> list[TunedRecord]:  # fmt: skip
    """The records that may fit a function, the most similar first; parameters of `transferred`."""
    if records_per_kernel < 1:
        raise TuningError(f"records_per_kernel={records_per_kernel}; allowed: 1 or more")
    stages, ops = Stages.of(function), function_ops(function)
    fitting = [r for r in records if not r.failed and r.stages.loop_map(stages)]
    by_kernel: dict[str, list[TunedRecord]] = {}
    for record in sorted(fitting, key=lambda r: r.seconds):
        kept = by_kernel.setdefault(record.workload, [])
        if len(kept) < records_per_kernel:
            kept.append(record)

    def order(record: TunedRecord) -> tuple[Any, ...]:
        other = record.stages
        loops = other.loop_map(stages)
        assert loops is not None
        far = distance(stages.extents, loops.extents(other.extents))
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
