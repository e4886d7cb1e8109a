"""Donors as a user names them, read and chosen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tvm_ext.errors import TuningError
from tvm_ext.transfer.donors import Ops, choose_donors
from tvm_ext.transfer.tune_store import RECORDS, WORKLOADS, read_records, read_workloads
from tvm_ext.transfer.tuned_record import TunedRecord

Donor = str | os.PathLike[str]
# By name, or folders whose paths are their names.
Donors = Mapping[str, Iterable[TunedRecord]] | Sequence[Donor]


def read_donors(donors: Donors) -> dict[str, list[TunedRecord]]:
    """The records of each donor.

    Parameters
    ----------
    donors : dict of str to records, or sequence of path
        Folders hold MetaSchedule's JSON database, as `tune` leaves it in its `work_dir`.

    Raises
    ------
    TuningError
        A folder has no database, or a line of it isn't a record.
    """
    if isinstance(donors, Mapping):
        return {name: list(records) for name, records in donors.items()}
    if isinstance(donors, (str, os.PathLike)):
        donors = [donors]
    return {str(folder): read_folder(Path(folder)) for folder in donors}


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
