"""Donors as a user names them, read and chosen."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tvm_ext.errors import LogError, TransferError, TuningError
from tvm_ext.transfer.ansor_donors import log_records, shipped_donors
from tvm_ext.transfer.bank import Bank
from tvm_ext.transfer.donors import Ops, choose_donors
from tvm_ext.transfer.tune_store import RECORDS, WORKLOADS, read_records, read_workloads
from tvm_ext.transfer.tuned_record import TunedRecord

SHIPPED = "shipped"
"""The donor that stands for Ansor's records that come with this package."""

# A bank's first line is short, a line of a log may be long.
_HEADER_BYTES = 4096


@dataclass(frozen=True)
class Donor:
    """What a donor gives.

    Attributes
    ----------
    name : str
    records : tuple of TunedRecord
    skipped : dict of str to int
        How many records of it can't be used, or aren't worth it, by reason.
    """

    name: str
    records: tuple[TunedRecord, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)

    @property
    def kernels(self) -> int:
        """How many kernels it has records of that didn't fail."""
        return sum(kernel_counts(self.records).values())

    def __str__(self) -> str:
        counts = (_counted(len(self.records), "record"), _counted(self.kernels, "kernel"))
        lines = [f"{self.name}: {' of '.join(counts)}"]
        for reason, count in sorted(self.skipped.items(), key=lambda item: (-item[1], item[0])):
            lines.append(f"  {count} skipped: {reason}")
        return "\n".join(lines)


# By name, or where they are.
Donors = Mapping[str, Iterable[TunedRecord]] | Sequence[str | os.PathLike[str]]


def read_donors(donors: Donors) -> dict[str, list[TunedRecord]]:
    """The records of each donor, by its name; what the names may be, `load_donors` says.

    Raises
    ------
    TuningError
        As `load_donors`, or all donors are without records, and some were skipped: why.
    """
    found = load_donors(donors)
    if not any(donor.records for donor in found) and any(donor.skipped for donor in found):
        told = [f"{d.name}: {n} x {why}" for d in found for why, n in d.skipped.items()]
        raise TuningError(f"no donor has a record that can be used: {'; '.join(told)}")
    return {donor.name: list(donor.records) for donor in found}


def load_donors(donors: Donors) -> list[Donor]:
    """Donors with what they give, and what they don't.

    Parameters
    ----------
    donors : dict of str to records, or sequence of str or path
        Each is a folder with MetaSchedule's JSON database, as `tune` leaves it in its `work_dir`;
        a bank's file, which is a donor for each of its sources; a log of Ansor's, plain or gzip,
        with its computations in ``LOG.tasks.json`` beside ``LOG.json`` or among those that come
        with this package; or the word ``"shipped"`` for Ansor's records that do.

    Raises
    ------
    TuningError
        One is nothing of that kind, or a line of a database or a bank isn't a record.
    """
    if isinstance(donors, Mapping):
        return [Donor(name, tuple(records)) for name, records in donors.items()]
    if isinstance(donors, (str, os.PathLike)):
        donors = [donors]
    found: dict[str, Donor] = {}
    for given in donors:
        for donor in _load(os.fspath(given)):
            known = found.get(donor.name, Donor(donor.name, ()))
            skipped = Counter(known.skipped) + Counter(donor.skipped)
            found[donor.name] = Donor(donor.name, (*known.records, *donor.records), skipped)
    return list(found.values())


def _counted(number: int, noun: str) -> str:
    """A number of things: ``1 record``, ``2 records``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _load(name: str) -> list[Donor]:
    """The donors behind one name."""
    skipped: Counter[str] = Counter()
    if name == SHIPPED:
        return [Donor(name, tuple(shipped_donors(skipped)), skipped)]
    path = Path(name)
    if path.is_dir():
        return [Donor(name, tuple(read_folder(path)))]
    if not path.is_file():
        raise TuningError(
            f"donor {name}: no such file or folder; allowed: a tuning run's folder, a bank, a log "
            f"of Ansor's, or the word {SHIPPED!r}"
        )
    if _is_bank(path):
        return [Donor(source, tuple(r)) for source, r in Bank.load(path).donors.items()]
    try:
        return [Donor(name, tuple(log_records(path, skipped)), skipped)]
    except (LogError, TransferError) as error:
        raise TuningError(
            f"donor {name} is neither a bank nor a log of Ansor's: {error}"
        ) from error


def _is_bank(path: Path) -> bool:
    """Whether a file starts as a bank does."""
    try:
        with gzip.open(path) as file:
            header = json.loads(file.readline(_HEADER_BYTES))
    except (OSError, EOFError, zlib.error, ValueError):
        return False
    return isinstance(header, dict) and {"schema", "mcpu"} <= header.keys()


def read_folder(folder: Path) -> list[TunedRecord]:
    """The records of a MetaSchedule JSON database."""
    for name in (WORKLOADS, RECORDS):
        if not (folder / name).is_file():
            raise TuningError(f"donor {folder} has no {name}")
    functions = list(read_workloads(folder / WORKLOADS))
    return list(read_records(folder / RECORDS, functions))


def donor_records(
    donors: Mapping[str, Sequence[TunedRecord]], shares: Mapping[Ops, float], top: int | None
) -> list[TunedRecord]:
    """The records of the chosen donors.

    Parameters
    ----------
    donors : dict of str to records
    shares : dict of class to float
        Of the target model's time.
    top : int, optional
        So many donors, by equation 6.1; None for all, also those that share no class, whose
        anchors may still fit.
    """
    if top is None:
        return [record for records in donors.values() for record in records]
    counts = {name: kernel_counts(records) for name, records in donors.items()}
    return [record for name in choose_donors(shares, counts, top) for record in donors[name]]


def kernel_counts(records: Iterable[TunedRecord]) -> dict[Ops, int]:
    """Kernels with a record that didn't fail, by class."""
    kernels: dict[Ops, set[str]] = {}
    for record in records:
        if not record.failed:
            kernels.setdefault(record.ops, set()).add(record.workload)
    return {ops: len(keys) for ops, keys in kernels.items()}
