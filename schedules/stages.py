"""The workloads of one kernel as a row of stages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any


def stages(workload: Any) -> tuple[Any, ...]:
    """The workloads that one kernel computes: a workload behind its producers, the first first."""
    before = getattr(workload, "producer", None)
    return (*stages(before), workload) if before is not None else (workload,)


def with_first_stage(workload: Any, first: Any) -> Any:
    """The workload with another one at the beginning of its producers, or in its own place."""
    before = getattr(workload, "producer", None)
    return first if before is None else replace(workload, producer=with_first_stage(before, first))
