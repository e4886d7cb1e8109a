"""The measured times of a record, checked."""

from __future__ import annotations

import math
from typing import Any

from tvm_ext.errors import RecordError

FAILED_SECONDS = 1e10
"""What both tuners write for the time of a run that failed."""


def run_seconds(runs: Any) -> tuple[float, ...]:
    """The seconds of every run of a measurement that succeeded.

    Raises
    ------
    RecordError
        No list, no run in it, or a time that isn't a positive number below 1e10.
    """
    if not isinstance(runs, list) or not runs:
        raise RecordError("bad time", f"{_short(runs)}; allowed: a list of seconds")
    for run in runs:
        # An integer may be too large for a float: compare it before it becomes one.
        number = type(run) in (int, float) and not (type(run) is float and math.isnan(run))
        if not number or not 0 < run < FAILED_SECONDS:
            raise RecordError("bad time", f"{_short(run)} s; allowed: above 0 and below 1e10")
    return tuple([float(run) for run in runs])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
