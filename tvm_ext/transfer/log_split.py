"""One log a target or a workload."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tvm_ext.transfer.log_spool import log_spool
from tvm_ext.transfer.log_write import write_log
from tvm_ext.transfer.new_directory import new_directory
from tvm_ext.transfer.record import Record, Workload

SPLITS: MappingProxyType[str, Callable[[Record], str]] = MappingProxyType(
    {"target": lambda record: record.target, "workload": lambda record: str(record.workload)}
)
"""What logs can be split by: the text that the records of one part share."""

_NAME_LENGTH = 60


@dataclass
class _Part:
    places: array[int] = field(default_factory=lambda: array("q"))
    workloads: list[Workload] = field(default_factory=list)


def write_parts(
    directory: Path, records: Iterable[tuple[bytes, Record]], by: str
) -> tuple[int, int]:
    """Write every part as a log of its own into a new directory, whole or not at all.

    Parameters
    ----------
    directory : Path
    records : iterable of (bytes, Record)
        Each with its line, all of one format.
    by : str
        One of `SPLITS`.

    Returns
    -------
    tuple of int
        Records and logs written.

    Raises
    ------
    LogError
        The directory is there and not empty, or can't be written.
    """
    with log_spool() as spool, new_directory(directory) as inside:
        parts: dict[str, _Part] = {}
        for line, record in records:
            part = parts.setdefault(SPLITS[by](record), _Part())
            part.places.append(spool.append(line))
            part.workloads.append(record.workload)
        written = 0
        for text, part in parts.items():
            output = inside / _file_name(text, is_database=part.workloads[0].kind == "structural")
            lines = zip(map(spool.read, part.places), part.workloads, strict=True)
            written += write_log(output, lines)
        return written, len(parts)


def _file_name(text: str, is_database: bool) -> str:
    """Letters that are safe in every file system, and a digest: cut texts may be alike."""
    digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    safe = re.sub(r"[^A-Za-z0-9.=+-]+", "_", text)[:_NAME_LENGTH].strip("_.-")
    return f"{safe}-{digest}" + ("" if is_database else ".json")
