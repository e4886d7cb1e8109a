"""Measured schedules that are kept: per CPU, with where they come from.

The folder ``tuning_logs/`` has a file ``<mcpu>.jsonl.gz`` a CPU. Its first line is
``{"schema": 1, "mcpu": "znver4"}``. Then each kernel has a line ``{"workload": hash, "module":
..., "ops": [...]}`` with TVM's own form of the unscheduled function and, unless the file is older,
the operators of its class, before the first of its records, ``{"workload": hash, "trace":
[instructions, decisions], "seconds": 1.2e-05, "threads": 2, "source": "..."}``. The source names
the model and the run, such as ``resnet50, transfer+search``.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from tvm_ext.errors import TuningError
from tvm_ext.files import replacing
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.bank_kernel import BankKernel, Provenance, Timing
from tvm_ext.transfer.kernel_class_ops import Ops
from tvm_ext.transfer.tuned_record import TunedRecord

__all__ = ["BANK_VARIABLE", "SCHEMA_VERSION", "Bank", "Provenance"]

SCHEMA_VERSION = 1
# The environment variable that names a user's own bank.
BANK_VARIABLE = "TVM_EXT_BANK"


class Bank:
    """The kept records of one CPU, the three fastest of each kernel.

    A function that a file has is read when a record of it is asked for: what is damaged in it is
    only found then.

    Parameters
    ----------
    mcpu : str
        LLVM's name of the CPU.
    """

    def __init__(self, mcpu: str) -> None:
        self.mcpu = mcpu
        self._kernels: dict[str, BankKernel] = {}

    def __len__(self) -> int:
        return sum(len(kernel.timings) for kernel in self._kernels.values())

    def __iter__(self) -> Iterator[TunedRecord]:
        return (record for kernel in self._kernels.values() for record in kernel.records)

    def add(self, records: Iterable[TunedRecord], provenance: Provenance) -> int:
        """Keep records; those that failed, repeat others or are too slow are dropped.

        Returns
        -------
        int
            How many of them are in the bank now that weren't.
        """
        before = self._traces()
        for record in records:
            if record.failed:
                continue
            if record.workload not in self._kernels:
                self._kernels[record.workload] = BankKernel.of(record)
            timing = Timing(record.trace, record.seconds, record.target, provenance)
            self._kernels[record.workload].add([timing])
        return len(self._traces() - before)

    def _traces(self) -> set[tuple[str, str]]:
        return {(key, t.trace) for key, kernel in self._kernels.items() for t in kernel.timings}

    def merge(self, other: Bank) -> None:
        """Keep the records of another bank, too, where they are among the fastest."""
        for key, kernel in other._kernels.items():
            self._kernels.setdefault(key, kernel.without_timings()).add(kernel.timings)

    def exact(self, workload: str) -> list[TunedRecord]:
        """The records of a kernel, by its key, the fastest first."""
        kernel = self._kernels.get(workload)
        return [] if kernel is None else kernel.records

    @property
    def classes(self) -> set[Ops]:
        """The operators of every kernel class that it has records of."""
        return {kernel.ops for kernel in self._kernels.values()}

    def of_class(self, ops: Ops) -> list[TunedRecord]:
        """The records of all kernels with this sequence of operators."""
        return [r for kernel in self._kernels.values() if kernel.ops == ops for r in kernel.records]

    def provenance(self, record: TunedRecord) -> Provenance:
        """Where a record of this bank was measured."""
        timings = self._kernels[record.workload].timings
        return next(t.provenance for t in timings if t.trace == record.trace)

    @property
    def donors(self) -> dict[str, list[TunedRecord]]:
        """The records by their source."""
        found: dict[str, list[TunedRecord]] = {}
        for kernel in self._kernels.values():
            for record, timing in zip(kernel.records, kernel.timings, strict=True):
                found.setdefault(timing.provenance.source, []).append(record)
        return found

    @classmethod
    def shipped(cls, cpu: CpuTarget) -> Bank:
        """The installed records of a CPU; an empty bank where there are none."""
        mcpu = str(cpu.llvm.get("mcpu", "generic"))
        path = Path(str(files("tvm_ext.tuning_logs"))) / f"{mcpu}.jsonl.gz"
        return cls.load(path) if path.exists() else cls(mcpu)

    @classmethod
    def configured(cls, cpu: CpuTarget) -> Bank:
        """What `build` uses for a CPU: the installed records, and those of ``$TVM_EXT_BANK``.

        Raises
        ------
        TuningError
            The user's file can't be read, or is of another CPU, whose times say nothing here.
        """
        bank = cls.shipped(cpu)
        if path := os.environ.get(BANK_VARIABLE):
            own = cls.load(path)
            if own.mcpu != bank.mcpu:
                raise TuningError(
                    f"{BANK_VARIABLE}={path} is a bank of {own.mcpu}; allowed for this target: "
                    f"{bank.mcpu}, or no bank at all by tuning='none'"
                )
            bank.merge(own)
        return bank

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Bank:
        """Read a file.

        Raises
        ------
        TuningError
            The file can't be read, is of a newer schema, or a line of it is something else. What is
        wrong inside a function is told, with file and line, when it is asked for.
        """
        path = Path(path)
        try:
            text = gzip.decompress(path.read_bytes()).decode("utf-8")
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise TuningError(f"can't read the bank {path}: {error}") from error
        lines = enumerate(text.splitlines(), 1)
        bank = cls(_header(path, next(lines, (1, ""))[1]))
        for number, line in lines:
            place = f"{path}, line {number}"
            try:
                bank._take(json.loads(line), place)
            except (ValueError, TypeError, KeyError) as error:
                raise TuningError(f"{place}: not a bank record ({error})") from error
        return bank

    def _take(self, data: dict[str, Any], place: str) -> None:
        """Take in a line: a kernel, or a record of one that came before."""
        key = str(data["workload"])
        if "module" in data:
            ops = tuple(_texts(data["ops"])) if "ops" in data else None
            (module,) = _texts([data["module"]])
            self._kernels.setdefault(key, BankKernel(key, module, ops, place))
            return
        seconds, threads, (source,) = (
            float(data["seconds"]), int(data["threads"]), _texts([data["source"]])
        )  # fmt: skip
        if not 0 < seconds < math.inf:
            raise TuningError(f"{place}: {seconds} s; allowed: finite, above 0")
        trace = json.dumps(data["trace"], separators=(",", ":"))
        timing = Timing(trace, seconds, self.mcpu, Provenance(source, threads))
        self._kernels[key].add([timing])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, which appears whole or not at all; equal banks give equal bytes.

        Raises
        ------
        ArtifactError
            The file can't be written.
        """
        lines: list[dict[str, Any]] = [{"schema": SCHEMA_VERSION, "mcpu": self.mcpu}]
        for key in sorted(self._kernels):
            kernel = self._kernels[key]
            lines.append({"workload": key, "module": kernel.module, "ops": list(kernel.ops)})
            lines += [
                {
                    "workload": key, "trace": json.loads(timing.trace), "seconds": timing.seconds,
                    "threads": timing.provenance.threads, "source": timing.provenance.source,
                }
                for timing in kernel.timings
            ]  # fmt: skip
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        with replacing(Path(path)) as stream:
            stream.write(gzip.compress(text.encode(), mtime=0))


def _header(path: Path, line: str) -> str:
    """The CPU's name in the first line."""
    try:
        data = json.loads(line)
        version, mcpu = int(data["schema"]), str(data["mcpu"])
    except (ValueError, TypeError, KeyError) as error:
        raise TuningError(f"{path}, line 1: not a bank's header ({error})") from error
    if version > SCHEMA_VERSION:
        raise TuningError(f"{path} has schema {version}; allowed: up to {SCHEMA_VERSION}")
    return mcpu


def _texts(values: Any) -> list[str]:
    """The values, which must be texts."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{values!r} is no text"[:120])
    return values
