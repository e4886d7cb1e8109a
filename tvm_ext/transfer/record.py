"""One measured schedule of a log, whichever tuner wrote it, and a line that holds none."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import dataclass, field
from typing import Any, Literal

from tvm_ext.errors import RecordError
from tvm_ext.transfer.target_device import device_kind

Format = Literal["ansor", "metaschedule"]
WorkloadKind = Literal["dag", "named", "structural"]

_DEPTH_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record stands.

    Attributes
    ----------
    path : str
    line : int
        From 1; comments and blank lines count.
    """

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}"


@dataclass(frozen=True, slots=True)
class Workload:
    """What was scheduled.

    Attributes
    ----------
    key : str
        Ansor: the hash of the compute DAG, or the name that its function was registered under.
        MetaSchedule: the structural hash of the module, in decimal digits.
    arguments : tuple
        Nested tuples. Ansor, hash: the shapes of the placeholders and of the output, each a tuple
        of sizes (logs up to v0.5 have all sizes in a row, or none). Ansor, name: the function's
        arguments: sizes, shapes, strides, dtypes. MetaSchedule: a (dtype, shape) an argument.
    kind : str
        What `key` is: ``dag``, ``named`` or ``structural``.
    module : Source or None
        MetaSchedule: the line of the workload file that holds the module; not compared.
    """

    key: str
    arguments: tuple[Any, ...]
    kind: WorkloadKind
    module: Source | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """``key(argument,argument)``, arguments as JSON without blanks."""
        arguments = (json.dumps(argument, separators=(",", ":")) for argument in self.arguments)
        return f"{self.key}({','.join(arguments)})"


@dataclass(frozen=True, slots=True)
class Record:
    """One schedule of one workload on one target, and how long it took.

    Attributes
    ----------
    format : str
        ``ansor`` or ``metaschedule``.
    version : str
        Of the log's format, such as ``v0.6``; empty in MetaSchedule's, which has none.
    workload : Workload
    target : str
        Kind and options, as Ansor writes them: ``llvm -keys=cpu -mcpu=core-avx2``.
    hardware : tuple of int
        Ansor: the hardware parameters of the search as written, the number of cores first; empty
        before v0.3 and in MetaSchedule's logs, whose target says it.
    layout_rewrite : int or None
        Ansor from v0.5: whether the layouts of constant inputs could change (0 no, 1 by a stage
        of their own, 2 as if they had been changed beforehand).
    steps : tuple
        Nested tuples, in order. Ansor: the transform steps, such as ``("CI", 4)``. MetaSchedule:
        the trace as (instructions, decisions); an object in it is a tuple of (key, value) pairs.
    seconds : tuple of float
        Every run; empty when the measurement failed.
    error : str or None
        Why the measurement failed: one of `ansor_log.ERRORS`, or of `metaschedule_log`'s
        ``measurement_failed`` and ``not_measured``.
    source : Source
    """

    format: Format
    version: str
    workload: Workload
    target: str
    hardware: tuple[int, ...]
    layout_rewrite: int | None
    steps: tuple[Any, ...] = field(repr=False)
    seconds: tuple[float, ...]
    error: str | None
    source: Source

    @property
    def valid(self) -> bool:
        """Whether it was measured."""
        return self.error is None

    @property
    def median(self) -> float:
        """Median of the runs in seconds; infinite when the measurement failed."""
        return statistics.median(self.seconds) if self.seconds else math.inf

    @property
    def device(self) -> str:
        """``cpu``, ``gpu`` or ``other``, from the target."""
        return device_kind(self.target)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that holds no usable record.

    Attributes
    ----------
    source : Source
    reason : str
        The kind of defect, the same words for all lines that have it.
    detail : str
        What was found in this line, and what is allowed.
    """

    source: Source
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        tail = f": {self.detail}" if self.detail else ""
        return f"{self.source}: {self.reason}{tail}"


Entry = Record | Skipped


def nested_tuple(value: Any, depth: int = _DEPTH_LIMIT) -> Any:
    """JSON's lists as tuples, its objects as tuples of (key, value) pairs, all the way down.

    Raises
    ------
    RecordError
        Lists in lists beyond any depth that a record has.
    """
    if not isinstance(value, (list, dict)):
        return value
    if depth == 0:
        raise RecordError("nested too deep", f"allowed: {_DEPTH_LIMIT} lists in each other")
    if isinstance(value, list):
        return tuple([nested_tuple(item, depth - 1) for item in value])
    return tuple((key, nested_tuple(item, depth - 1)) for key, item in value.items())
