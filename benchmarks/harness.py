"""Time inference engines against each other fairly, and write the results down.

Rules that this file keeps, and why:

- Engines are interleaved in one process (A B C A B C ...), and ratios are medians of per-round
  ratios: what slows the machine for a while slows every engine of the round.
- Before each slice the harness sleeps and makes one untimed call. Thread pools spin for a while
  after a call (TVM's for more than 240 ms as it comes, ONNX Runtime's for 60 ms), which takes a
  core from the engine that runs next; the sleep outlasts that, the call wakes the engine up.
- TVM's pool has half the logical processors by default and pins the calling thread to one of them,
  which engines created later inherit: `prepare_tvm_threads` prevents both.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

Inputs = dict[str, np.ndarray]
Engine = Callable[[], Any]

# Workers yield about once a microsecond: some 15 ms, longer than any gap inside a network and
# shorter than the harness's sleep.
_TVM_SPIN_COUNT = "20000"
_ISA_FLAGS = (
    "avx2",
    "fma",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
)
_PACKAGES = ("tvm_ext", "apache-tvm", "onnxruntime", "openvino", "onnx", "numpy")


@dataclass(frozen=True)
class Result:
    """Times of several engines over the same rounds.

    Attributes
    ----------
    seconds : dict[str, tuple[float, ...]]
        By engine, for each round the median time of one call.
    """

    seconds: dict[str, tuple[float, ...]]

    def percentile(self, engine: str, percent: float) -> float:
        """Return a percentile, over the rounds, of an engine's time in seconds."""
        return float(np.percentile(self.seconds[engine], percent))

    def median(self, engine: str) -> float:
        """Return an engine's median time in seconds."""
        return self.percentile(engine, 50)

    def p10(self, engine: str) -> float:
        """Return the tenth percentile of an engine's time in seconds."""
        return self.percentile(engine, 10)

    def p90(self, engine: str) -> float:
        """Return the ninetieth percentile of an engine's time in seconds."""
        return self.percentile(engine, 90)

    def ratio(self, engine: str, reference: str) -> float:
        """Return the median over the rounds of `engine`'s time divided by `reference`'s."""
        return float(np.median(np.divide(self.seconds[engine], self.seconds[reference])))

    def ratios(self) -> dict[tuple[str, str], float]:
        """Return `ratio` for every ordered pair of engines."""
        return {pair: self.ratio(*pair) for pair in permutations(self.seconds, 2)}


def compare(
    engines: Mapping[str, Engine],
    *,
    rounds: int = 15,
    warmup: int = 3,
    min_time_s: float = 0.2,
    settle_s: float = 0.1,
    timer: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Time engines in interleaved rounds.

    Parameters
    ----------
    engines : Mapping[str, Callable[[], Any]]
        What to call, by name; the order is the order within a round.
    rounds : int
        Number of rounds, at least 1.
    warmup : int
        Calls of each engine before the first round.
    min_time_s : float
        An engine is called, at least once, until its timed calls in the round add up to this.
    settle_s : float
        Sleep before each engine's turn, so that the thread pool of the one before goes idle.
    timer : Callable[[], float]
        Clock in seconds.
    sleep : Callable[[float], None]
        What sleeps.

    Returns
    -------
    Result
        The median call of each round, by engine.

    Raises
    ------
    ValueError
        If there are no engines or `rounds` is below 1.
    """
    if not engines:
        raise ValueError("compare needs at least one engine")
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}, it must be at least 1")
    for engine in engines.values():
        for _ in range(warmup):
            engine()
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, engine in engines.items():
            sleep(settle_s)
            engine()
            seconds[name].append(_median_call(engine, min_time_s, timer))
    return Result({name: tuple(times) for name, times in seconds.items()})


def _median_call(engine: Engine, min_time_s: float, timer: Callable[[], float]) -> float:
    calls: list[float] = []
    total = 0.0
    while not calls or total < min_time_s:
        start = timer()
        engine()
        calls.append(timer() - start)
        total += calls[-1]
    return float(np.median(calls))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return float(np.exp(np.mean(np.log(values))))


def max_relative_error(actual: Any, expected: Any) -> float:
    """Compare outputs, each by its largest difference over its largest magnitude.

    Parameters
    ----------
    actual, expected : numpy.ndarray or sequence of numpy.ndarray
        One output or all outputs of a model, in the same order and of the same shapes.

    Returns
    -------
    float
        The largest over the outputs of ``max|actual - expected| / max|expected|``; infinite when
        a value of `actual` is not finite. Where `expected` is all zero, the largest difference.

    Raises
    ------
    ValueError
        If the numbers of outputs, or the shapes of an output, differ.
    """
    actual, expected = _as_list(actual), _as_list(expected)
    if len(actual) != len(expected):
        raise ValueError(f"{len(actual)} outputs against {len(expected)}")
    worst = 0.0
    for i, (got, want) in enumerate(zip(actual, expected, strict=True)):
        got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
        if got.shape != want.shape:
            raise ValueError(f"output {i} has shape {got.shape}, expected {want.shape}")
        if not np.isfinite(got).all():
            return float("inf")
        scale = np.abs(want).max() or 1.0
        worst = max(worst, float(np.abs(got - want).max() / scale))
    return worst


def _as_list(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def onnxruntime_engine(path: Path, inputs: Inputs, threads: int) -> Engine:
    """Make a callable that runs a model in ONNX Runtime on the CPU.

    Parameters
    ----------
    path : pathlib.Path
        The ONNX file.
    inputs : dict[str, numpy.ndarray]
        What every call runs on.
    threads : int
        Intra-operator threads.

    Returns
    -------
    Callable[[], list[numpy.ndarray]]
        Returns all outputs.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def openvino_engine(path: Path, inputs: Inputs, threads: int) -> Engine:
    """Make a callable that runs a model in OpenVINO on the CPU, in float32, for latency.

    Parameters
    ----------
    path : pathlib.Path
        The ONNX file.
    inputs : dict[str, numpy.ndarray]
        What every call runs on.
    threads : int
        Inference threads.

    Returns
    -------
    Callable[[], list[numpy.ndarray]]
        Returns all outputs, as views that the next call overwrites.
    """
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(str(path)),
        "CPU",
        {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        },
    )
    request = compiled.create_infer_request()

    def run() -> list[np.ndarray]:
        results = request.infer(inputs, share_inputs=True, share_outputs=True)
        return [results[output] for output in compiled.outputs]

    return run


def prepare_tvm_threads(most: int) -> None:
    """Set the environment that TVM's thread pool reads when it starts.

    The pool never grows past the number of workers it started with, so that `set_tvm_threads` can
    only choose among 1 to `most`.

    Parameters
    ----------
    most : int
        The largest number of threads that will be asked for.

    Raises
    ------
    RuntimeError
        If TVM has been imported already, when its pool may have started.
    """
    if "tvm" in sys.modules:
        raise RuntimeError("prepare_tvm_threads must be called before tvm is imported")
    os.environ["TVM_NUM_THREADS"] = str(most)
    os.environ["TVM_BIND_THREADS"] = "0"
    os.environ["TVM_THREAD_POOL_SPIN_COUNT"] = _TVM_SPIN_COUNT


def set_tvm_threads(threads: int) -> None:
    """Set how many threads TVM uses for the calls that this thread makes from now on.

    Parameters
    ----------
    threads : int
        From 1 to what `prepare_tvm_threads` was given.

    Raises
    ------
    RuntimeError
        If the pool has fewer workers.
    """
    import tvm

    # Mode 1 asks for the fast cores first; without binding it only sets the number.
    tvm.get_global_func("runtime.config_threadpool")(1, threads)
    got = tvm.get_global_func("runtime.NumThreads")()
    if got != threads:
        raise RuntimeError(
            f"TVM's pool gives {got} threads, not {threads}: call prepare_tvm_threads({threads}) "
            "before tvm is imported"
        )


def describe_machine() -> dict[str, Any]:
    """Describe the machine and the software.

    Returns
    -------
    dict
        ``cpu`` (model name), ``logical_cpus`` (those this process may use), ``isa`` (list of
        vector extensions), ``memory_gib``, ``system``, ``python``, ``versions`` (by package, those
        installed).
    """
    import psutil

    fields = _cpuinfo()
    flags = set(fields.get("flags", "").split())
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": fields.get("model name") or platform.processor() or platform.machine(),
        "logical_cpus": len(affinity(0)) if affinity else os.cpu_count(),
        "isa": [flag for flag in _ISA_FLAGS if flag in flags],
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
    }


def _cpuinfo() -> dict[str, str]:
    """Return the first processor's fields from /proc/cpuinfo; empty where there is none."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text(encoding="utf-8").split("\n\n")[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}
