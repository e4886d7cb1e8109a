"""One pruned model: built with its zeros and without, checked, and timed against its peers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import onnx

from benchmarks import harness, pruned_models, zoo
from benchmarks.accuracy import max_relative_error
from benchmarks.deepsparse_engine import DeepSparseEngine, DeepSparseError
from benchmarks.engines import Engine, onnxruntime_engine
from benchmarks.macs import count_macs
from benchmarks.tvm_threads import set_tvm_threads

OURS, DENSE, ORT, DEEPSPARSE = "tvm_ext", "tvm_ext dense", "ONNX Runtime", "DeepSparse"
TOLERANCE = 1e-3
"""Largest relative error against ONNX Runtime that counts as right."""

HEADER = (
    "model",
    "pruning",
    "MACs left",
    *(f"{engine}, ms" for engine in (OURS, DENSE, ORT, DEEPSPARSE)),
    *(f"over {engine}" for engine in (DENSE, ORT, DEEPSPARSE)),
    "share of expected",
    "weights, MiB",
    f"error of {OURS}",
    f"error of {DEEPSPARSE}",
)


@dataclass(frozen=True)
class Case:
    """A model of the zoo, pruned as `pruned_models.path` does."""

    model: str
    scheme: str
    density: float


@dataclass(frozen=True)
class Row:
    """One case at one number of threads; `failure` says why the rest is missing.

    Attributes
    ----------
    macs : float
        Share of the model's multiply-adds that remain.
    weights : tuple of int
        Bytes of constants in our build of the pruned model and of the dense one.
    deepsparse : str
        DeepSparse's version, or why it has no times.
    """

    case: Case
    times: harness.Result | None = None
    macs: float = float("nan")
    error: float = float("nan")
    deepsparse_error: float = float("nan")
    weights: tuple[int, int] = (0, 0)
    deepsparse: str = ""
    failure: str = ""

    @property
    def good(self) -> bool:
        """Whether the model ran and its output is within `TOLERANCE`."""
        return not self.failure and self.error <= TOLERANCE

    @property
    def expected_share(self) -> float:
        """What is reached of the speed-up over ONNX Runtime that the remaining MACs promise."""
        assert self.times is not None
        return self.macs * self.times.ratio(ORT, OURS)

    def cells(self) -> list[str]:
        """Return the row of the table, under `HEADER`."""
        first = [self.case.model, f"{self.case.scheme}, {self.case.density:g}"]
        if self.times is None:
            return [*first, f"failed: {self.failure}", *[""] * (len(HEADER) - 3)]
        has = DEEPSPARSE in self.times.seconds
        pruned, dense = (f"{size / 2**20:.1f}" for size in self.weights)
        return [
            *first,
            f"{self.macs:.1%}",
            *(self._milliseconds(engine) for engine in (OURS, DENSE, ORT)),
            self._milliseconds(DEEPSPARSE) if has else self.deepsparse,
            *(f"{self.times.ratio(engine, OURS):.2f}" for engine in (DENSE, ORT)),
            f"{self.times.ratio(DEEPSPARSE, OURS):.2f}" if has else "",
            f"{self.expected_share:.2f}",
            f"{pruned} of {dense}",
            f"{self.error:.1e}{'' if self.good else ' WRONG'}",
            f"{self.deepsparse_error:.1e}" if has else "",
        ]

    def _milliseconds(self, engine: str) -> str:
        assert self.times is not None
        middle, low, high = (
            1e3 * f(engine) for f in (self.times.median, self.times.p10, self.times.p90)
        )
        digits = 2 if middle >= 1 else 3
        return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def bench_case(case: Case, threads: Sequence[int], options: dict[str, Any]) -> dict[int, Row]:
    """Build one pruned model, and the model that it was, and time them at each number of threads.

    Our dense build is that of the model before pruning: a plan without sparse algorithms, chosen as
    if there were none. ONNX Runtime runs the pruned file, and computes with its zeros.

    Parameters
    ----------
    case : Case
    threads : Sequence[int]
        Numbers of threads.
    options : dict[str, Any]
        For `harness.compare`.

    Returns
    -------
    dict[int, Row]
        By number of threads. A failure anywhere becomes the rows' `failure`: the other models of
        a run are still worth having. DeepSparse may be missing.
    """
    rows: dict[int, Row] = {}
    try:
        import tvm_ext

        path = pruned_models.path(case.model, case.scheme, case.density)
        every, remaining = count_macs(onnx.load(path))
        built = {OURS: tvm_ext.build(path), DENSE: tvm_ext.build(zoo.path(case.model))}
        for count in threads:
            set_tvm_threads(count)
            rows[count] = _time(case, built, count, remaining / every, options)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        rows.update({count: Row(case, failure=reason) for count in threads if count not in rows})
    return rows


def _time(
    case: Case, built: dict[str, Any], threads: int, macs: float, options: dict[str, Any]
) -> Row:
    path = pruned_models.path(case.model, case.scheme, case.density)
    inputs = zoo.sample_inputs(case.model)
    engines: dict[str, Engine] = {
        name: lambda executable=executable: executable(inputs) for name, executable in built.items()
    }
    engines[ORT] = onnxruntime_engine(path, inputs, threads)
    expected = engines[ORT]()
    error, peer_error, clock = max_relative_error(engines[OURS](), expected), float("nan"), None
    weights = [sum(c.nbytes for c in built[n].constants.values()) for n in (OURS, DENSE)]
    with ExitStack() as stack:
        try:
            peer = stack.enter_context(DeepSparseEngine(path, inputs, threads))
            peer_error = max_relative_error(peer.outputs(), expected)
            engines[DEEPSPARSE], clock, version = peer, peer.clock, peer.version
        except DeepSparseError as reason:
            version = str(reason)
        times = harness.compare(engines, timer=clock or time.perf_counter, **options)
    return Row(case, times, macs, error, peer_error, (weights[0], weights[1]), version)
