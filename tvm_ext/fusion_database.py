"""Measured answers to fusion's open questions, kept in a file of JSON lines."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tvm_ext.errors import DatabaseError


@dataclass(frozen=True)
class Record:
    """One measurement.

    Attributes
    ----------
    key : str
        The operators, their shapes and how they were cut.
    target : str
    fused_us, split_us : float
        Microseconds of the one kernel, and of the kernels of its parts.
    """

    key: str
    target: str
    fused_us: float
    split_us: float


class FusionDatabase:
    """Records by key and target; the last of several counts.

    Parameters
    ----------
    path : path
        Read if it exists; records are appended as they are added.

    Raises
    ------
    DatabaseError
        A line isn't a record.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._records: dict[tuple[str, str], Record] = {}
        if self.path.exists():
            for number, line in enumerate(self.path.read_text().splitlines(), 1):
                record = _parsed(line, self.path, number)
                self._records[record.key, record.target] = record

    def __len__(self) -> int:
        return len(self._records)

    def find(self, key: str, target: str) -> Record | None:
        """The record, if there is one."""
        return self._records.get((key, target))

    def add(self, record: Record) -> None:
        """Keep a record, in the file too."""
        self._records[record.key, record.target] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(record)) + "\n")


def _parsed(line: str, path: Path, number: int) -> Record:
    try:
        data = json.loads(line)
        return Record(
            str(data["key"]), str(data["target"]), float(data["fused_us"]), float(data["split_us"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DatabaseError(f"{path}, line {number}: not a fusion record ({error})") from error
