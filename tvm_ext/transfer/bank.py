"""Measured schedules that are kept: per CPU, with where they come from.

The folder ``tuning_logs/`` has a file ``<mcpu>.jsonl.gz`` a CPU. Its first line is
``{"schema": 1, "mcpu": "znver4"}``. Then each kernel has a line ``{"workload": hash, "module":
...}`` with TVM's own form of the unscheduled function, before the first of its records,
``{"workload": hash, "trace": [instructions, decisions], "seconds": 1.2e-05, "threads": 2,
"source": "..."}``. The source names the model and the run, such as ``resnet50, transfer+search``.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import tvm
from tvm.s_tir.meta_schedule.database import Workload

from tvm_ext.errors import TuningError
from tvm_ext.files import replacing
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.kernel_class_ops import Ops
from tvm_ext.transfer.tuned_record import TunedRecord

SCHEMA_VERSION = 1
# The environment variable that names a user's own bank.
BANK_VARIABLE = "TVM_EXT_BANK"
# Records of one kernel that are worth keeping: the fastest.
_KEPT = 3


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


class Bank:
    """The kept records of one CPU, the three fastest of each kernel.

    Parameters
    ----------
    mcpu : str
        LLVM's name of the CPU.
    """

    def __init__(self, mcpu: str) -> None:
        self.mcpu = mcpu
        self._records: dict[str, list[tuple[TunedRecord, Provenance]]] = {}

    def __len__(self) -> int:
        return sum(len(kept) for kept in self._records.values())

    def __iter__(self) -> Iterator[TunedRecord]:
        return (record for kept in self._records.values() for record, _ in kept)

    def add(self, records: Iterable[TunedRecord], provenance: Provenance) -> int:
        """Keep records; those that failed, repeat others or are too slow are dropped.

        Returns
        -------
        int
            How many of them are in the bank now that weren't.
        """
        before = {(r.workload, r.trace) for r in self}
        for record in records:
            if record.failed:
                continue
            kept = self._records.setdefault(record.workload, [])
            kept.append((record, provenance))
            fastest: dict[str, tuple[TunedRecord, Provenance]] = {}
            for pair in sorted(kept, key=lambda pair: pair[0].seconds):
                fastest.setdefault(pair[0].trace, pair)
            self._records[record.workload] = list(fastest.values())[:_KEPT]
        return len({(r.workload, r.trace) for r in self} - before)

    def merge(self, other: Bank) -> None:
        """Keep the records of another bank, too, where they are among the fastest."""
        for kept in other._records.values():
            for record, provenance in kept:
                self.add([record], provenance)

    def exact(self, workload: str) -> list[TunedRecord]:
        """The records of a kernel, by its key, the fastest first."""
        return [record for record, _ in self._records.get(workload, [])]

    def of_class(self, ops: Ops) -> list[TunedRecord]:
        """The records of all kernels with this sequence of operators."""
        return [record for record in self if record.ops == ops]

    def provenance(self, record: TunedRecord) -> Provenance:
        """Where a record of this bank was measured."""
        return next(p for r, p in self._records[record.workload] if r.trace == record.trace)

    @property
    def donors(self) -> dict[str, list[TunedRecord]]:
        """The records by their source."""
        found: dict[str, list[TunedRecord]] = {}
        for kept in self._records.values():
            for record, provenance in kept:
                found.setdefault(provenance.source, []).append(record)
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
            The file can't be read, is of a newer schema, or a line of it is something else.
        """
        path = Path(path)
        try:
            text = gzip.decompress(path.read_bytes()).decode("utf-8")
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise TuningError(f"can't read the bank {path}: {error}") from error
        lines = enumerate(text.splitlines(), 1)
        bank = cls(_header(path, next(lines, (1, ""))[1]))
        functions: dict[str, Any] = {}
        for number, line in lines:
            try:
                data = json.loads(line)
                key = str(data["workload"])
                if "module" in data:
                    (function,) = Workload.from_json([key, data["module"]]).mod.functions.values()
                    functions[key] = function
                    continue
                trace = json.dumps(data["trace"], separators=(",", ":"))
                seconds, threads = float(data["seconds"]), int(data["threads"])
                record = TunedRecord(functions[key], key, trace, seconds, bank.mcpu)
                source = str(data["source"])
            except (ValueError, TypeError, KeyError, RuntimeError) as error:
                raise TuningError(f"{path}, line {number}: not a bank record ({error})") from error
            if not 0 < seconds < math.inf:
                raise TuningError(f"{path}, line {number}: {seconds} s; allowed: finite, above 0")
            bank.add([record], Provenance(source, threads))
        return bank

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, which appears whole or not at all; equal banks give equal bytes.

        Raises
        ------
        ArtifactError
            The file can't be written.
        """
        lines: list[dict[str, Any]] = [{"schema": SCHEMA_VERSION, "mcpu": self.mcpu}]
        for key in sorted(self._records):
            kept = self._records[key]
            module = Workload(tvm.IRModule({"main": kept[0][0].function})).as_json()[1]
            lines.append({"workload": key, "module": module})
            lines += [
                {
                    "workload": key, "trace": json.loads(record.trace), "seconds": record.seconds,
                    "threads": provenance.threads, "source": provenance.source,
                }
                for record, provenance in kept
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
