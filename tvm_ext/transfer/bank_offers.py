"""What the bank offers the planner for a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tvm_ext.layers import Layer
from tvm_ext.planner import Offer
from tvm_ext.schedules.tuned import ProgramWorkload, Tuned
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.bank import Bank
from tvm_ext.transfer.kernel_class import unique_kernels
from tvm_ext.transfer.kernel_class_ops import Ops, class_ops
from tvm_ext.transfer.tensor_program import tensor_program
from tvm_ext.transfer.trace_template_stages import Stages
from tvm_ext.transfer.tune_candidates import Candidate, ranked, transferred
from tvm_ext.transfer.tune_store import workload_key
from tvm_ext.transfer.tuned_record import TunedRecord, record_name


class BankOffers:
    """A bank as `planner.choose` asks it.

    A kernel that the bank has itself gets its fastest record. Another one of a class that the bank
    has gets the schedule of the most similar kernel, made to fit; its time is the donor's, scaled
    by the iterations. A layer whose class isn't in the bank costs no more than a look.

    Parameters
    ----------
    bank : Bank
    layers : sequence of Layer
        Of the whole model.
    cpu : CpuTarget
    """

    def __init__(self, bank: Bank, layers: Sequence[Layer], cpu: CpuTarget) -> None:
        self._bank, self._cpu = bank, cpu
        self._classes = bank.classes
        self._first = {
            layer.name: group[0].name for group in unique_kernels(layers) for layer in group
        }
        # Read and slowed once: a record remembers its function's stages.
        self._of_classes: dict[Ops, list[TunedRecord]] = {}
        self._programs: dict[str, ProgramWorkload | None] = {}
        self._candidates: dict[str, Candidate | None] = {}

    def __call__(self, layer: Layer, limit_s: float) -> Offer | str:
        """A schedule that takes less than `limit_s`; or why there is none."""
        if class_ops(layer) not in self._classes or (workload := self._program(layer)) is None:
            return ""
        key = workload_key(workload.function)
        if exact := self._bank.exact(key):
            return self._own(workload, self._slowed(exact), limit_s)
        if workload.ops not in self._of_classes:
            self._of_classes[workload.ops] = self._slowed(self._bank.of_class(workload.ops))
        records = self._of_classes[workload.ops]
        return self._of_class(self._first[layer.name], workload, key, records, limit_s)

    def _own(
        self, workload: ProgramWorkload, records: Sequence[TunedRecord], limit_s: float
    ) -> Offer | str:
        """The fastest record of the kernel itself, if it is fast enough."""
        reasons: list[str] = []
        for record in records:
            if record.seconds >= limit_s:
                return "; ".join([*reasons, _lost(record, record.seconds, limit_s)])
            params = {"record": record.name, "trace": record.trace}
            wrong = Tuned().check(workload, params, self._cpu)
            if not wrong:
                return Offer(params, record.seconds)
            reasons.append(f"record {record.name}: {wrong}")
        return "; ".join(reasons)

    def _of_class(
        self, kernel: str, workload: ProgramWorkload, key: str, records: Sequence[TunedRecord],
        limit_s: float,
    ) -> Offer | str:  # fmt: skip
        """The most similar kernel's schedule, if a gain is to be expected of it."""
        order = ranked(workload.function, records)
        if not order:
            return ""
        work = prod(Stages.of(workload.function).extents)
        expected = order[0].seconds * work / prod(order[0].stages.extents)
        if expected >= limit_s:
            # Before any work is put into making it fit.
            return _lost(order[0], expected, limit_s)
        if kernel not in self._candidates:
            found = next(transferred(workload.function, order, self._cpu), None)
            self._candidates[kernel] = found
        candidate = self._candidates[kernel]
        if candidate is None:
            return f"none of {len(order)} records of its class fits"
        if candidate.predicted_s >= limit_s:
            return _lost(order[0], candidate.predicted_s, limit_s)
        params = {"record": record_name(key, candidate.trace), "trace": candidate.trace}
        return Offer(params, candidate.predicted_s)

    def _program(self, layer: Layer) -> ProgramWorkload | None:
        """The layer's function, made once for all layers of a kernel."""
        kernel = self._first[layer.name]
        if kernel not in self._programs:
            program = tensor_program(layer)
            self._programs[kernel] = None if isinstance(program, str) else program.workload
        return self._programs[kernel]

    def _slowed(self, records: Sequence[TunedRecord]) -> list[TunedRecord]:
        """The records with the times to expect of the target's cores.

        Fewer cores than the record had take longer in proportion. More of them aren't taken to be
        faster, which nobody has measured.
        """
        found = []
        for record in records:
            threads = self._bank.provenance(record).threads
            slower = max(1.0, threads / self._cpu.cores)
            found.append(
                record if slower == 1 else replace(record, seconds=record.seconds * slower)
            )
        return sorted(found, key=lambda record: record.seconds)


def _lost(record: TunedRecord, seconds: float, limit_s: float) -> str:
    return f"record {record.name}: {seconds * 1e6:.0f} us against {limit_s * 1e6:.0f} us"
