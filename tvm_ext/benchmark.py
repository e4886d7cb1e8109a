"""Latency of a compiled model over many runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tvm_ext.threads import default_threads

if TYPE_CHECKING:
    from tvm_ext.executable import Executable


@dataclass(frozen=True)
class Benchmark:
    """Latency of a model over many runs.

    Attributes
    ----------
    median_ms, p10_ms, p90_ms : float
        Milliseconds.
    runs : int
    gflops : float
        10**9 floating-point operations of the model a second, at the median. A Winograd layer
        counts as the convolution that it replaces.
    peak_fraction : float
        `gflops` over the measured FMA peak of the threads used; can exceed 1 with Winograd.
    """

    median_ms: float
    p10_ms: float
    p90_ms: float
    runs: int
    gflops: float
    peak_fraction: float

    def __str__(self) -> str:
        return (
            f"{self.median_ms:.3f} ms (p10 {self.p10_ms:.3f}, p90 {self.p90_ms:.3f}, "
            f"{self.runs} runs), {self.gflops:.1f} GFLOP/s, {self.peak_fraction:.0%} of peak"
        )


def benchmark(exe: Executable, runs: int, min_seconds: float) -> Benchmark:
    """Time inferences on the inputs set last: at least `runs`, for at least `min_seconds`."""
    for _ in range(3):
        exe.run()
    times: list[float] = []
    while len(times) < runs or sum(times) < min_seconds:
        start = time.perf_counter()
        exe.run()
        times.append(time.perf_counter() - start)
    p10, median, p90 = np.percentile(times, [10, 50, 90])
    rate = exe.flops / median
    peak = exe.target.fma_peak * default_threads()
    return Benchmark(median * 1e3, p10 * 1e3, p90 * 1e3, len(times), rate / 1e9, rate / peak)
