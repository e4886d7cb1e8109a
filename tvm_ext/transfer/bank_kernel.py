"""A kernel of a bank: its function, read when it is asked for, and its fastest records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import tvm
from tvm import tirx
from tvm.s_tir.meta_schedule.database import Workload

from tvm_ext.errors import TuningError
from tvm_ext.transfer.kernel_class_ops import Ops
from tvm_ext.transfer.tune_store import workload_key
from tvm_ext.transfer.tuned_record import TunedRecord, function_ops

# Records of one kernel that are worth keeping: the fastest.
KEPT = 3


@dataclass(frozen=True)
class Provenance:
    """Where a record was measured.

    Attributes
    ----------
    source : str
        Model and run.
    threads : int
    """

    source: str
    threads: int


@dataclass(frozen=True)
class Timing:
    """A trace of a kernel and how long it took."""

    trace: str = field(repr=False)
    seconds: float
    target: str
    provenance: Provenance


class BankKernel:
    """A kernel and its three fastest timings.

    Parameters
    ----------
    key : str
        Structural hash of the module.
    module : str
        TVM's own form of it, which isn't read before the function is asked for.
    ops : tuple of str, optional
        Its kernel class; without, the function tells it.
    place : str
        File and line, for messages.
    function : PrimFunc, optional
        If it is known, the module isn't read.
    """

    def __init__(
        self, key: str, module: str, ops: Ops | None = None, place: str = "",
        function: tirx.PrimFunc | None = None,
    ) -> None:  # fmt: skip
        self.key, self.module, self.timings = key, module, list[Timing]()
        self._ops, self._place, self._function = ops, place, function
        self._records: list[TunedRecord] = []

    @classmethod
    def of(cls, record: TunedRecord) -> BankKernel:
        """The kernel of a record, without timings."""
        module = Workload(tvm.IRModule({"main": record.function})).as_json()[1]
        return cls(record.workload, str(module), record.ops, function=record.function)

    def without_timings(self) -> BankKernel:
        """The same kernel, with nothing measured."""
        return BankKernel(self.key, self.module, self._ops, self._place, self._function)

    @property
    def function(self) -> tirx.PrimFunc:
        """The unscheduled function.

        Raises
        ------
        TuningError
            The bank's file has something else in its place, or a function of another class.
        """
        if self._function is None:
            self._function = self._read()
        return self._function

    def _read(self) -> tirx.PrimFunc:
        try:
            (function,) = Workload.from_json([self.key, self.module]).mod.functions.values()
        except (ValueError, TypeError, RuntimeError) as error:
            raise self._damaged(str(error)) from error
        if workload_key(function) != self.key:
            raise self._damaged("its function is another kernel's")
        if self._ops is not None and (found := function_ops(function)) != self._ops:
            raise self._damaged(f"its operators are {list(found)}, not {list(self._ops)}")
        return function

    @property
    def ops(self) -> Ops:
        """The operators of its kernel class."""
        if self._ops is None:
            self._ops = function_ops(self.function)
        return self._ops

    @property
    def records(self) -> list[TunedRecord]:
        """Its records, the fastest first."""
        if len(self._records) != len(self.timings):
            # Kept, since each remembers what it has found out about the function.
            self._records = [
                TunedRecord(self.function, self.key, t.trace, t.seconds, t.target)
                for t in self.timings
            ]
        return list(self._records)

    def add(self, timings: Iterable[Timing]) -> None:
        """Keep timings where they are among the fastest; a repeat counts with its best time."""
        fastest: dict[str, Timing] = {}
        for timing in sorted([*self.timings, *timings], key=lambda timing: timing.seconds):
            fastest.setdefault(timing.trace, timing)
        self.timings, self._records = list(fastest.values())[:KEPT], []

    def _damaged(self, reason: str) -> TuningError:
        return TuningError(f"{self._place}: not a bank record ({reason})")
