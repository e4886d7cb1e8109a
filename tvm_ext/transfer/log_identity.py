"""When two records are the same measurement, and which of the two is worth more."""

from __future__ import annotations

import hashlib
import re

from tvm_ext.transfer.record import Record

Worth = tuple[bool, int, float, bytes]

_WORKLOAD_NUMBER = re.compile(rb"\s*\[\s*\d+")


def record_body(line: bytes, record: Record) -> bytes:
    """A record's line without what depends on the file that it stands in.

    Blanks around it, and the number of a MetaSchedule record's workload.
    """
    if record.format == "metaschedule":
        line = _WORKLOAD_NUMBER.sub(b"", line, count=1)
    return line.strip()


def identity(record: Record) -> bytes:
    """Sixteen bytes, equal for records of the same schedule in the same circumstances.

    They are of the same workload (key and arguments), target, hardware parameters, rewriting of
    layouts, and steps.
    """
    workload = record.workload
    parts = (
        record.format, workload.key, workload.arguments,
        record.target, record.hardware, record.layout_rewrite, record.steps,
    )  # fmt: skip
    return _digest(repr(parts).encode())


def worth(line: bytes, record: Record) -> Worth:
    """What ranks measurements of one schedule: the greatest is kept.

    One that succeeded counts more than one that failed; then more runs; then a lower median. The
    digest of the text decides at last, so that the choice doesn't depend on the order of files.
    """
    text = _digest(record_body(line, record))
    return record.valid, len(record.seconds), -record.median, text


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
