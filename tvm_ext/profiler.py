"""Where the time of a compiled model goes, layer by layer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_ext.threads import default_threads

if TYPE_CHECKING:
    from tvm_ext.executable import Executable


@dataclass(frozen=True)
class LayerTime:
    """One row: a layer, or a layout conversion before one.

    Attributes
    ----------
    name, algorithm : str
    ms : float
        Median milliseconds.
    gflops : float
        10**9 floating-point operations a second.
    peak_fraction : float
        Of the measured FMA peak of all threads.
    estimate_ms : float
        What the plan's cost model said.
    """

    name: str
    algorithm: str
    ms: float
    gflops: float
    peak_fraction: float
    estimate_ms: float


@dataclass(frozen=True)
class Profile:
    """The rows of one profile, in execution order."""

    rows: tuple[LayerTime, ...]

    @property
    def total_ms(self) -> float:
        """Sum of the layers' medians."""
        return sum(row.ms for row in self.rows)

    def table(self) -> Any:
        """The profile as a `rich` table."""
        from tvm_ext.tables import profile_table

        return profile_table(self)

    def __str__(self) -> str:
        from tvm_ext.tables import render

        return render(self.table())


def profile(executable: Executable, runs: int) -> Profile:
    """Call the kernels one by one, in the model's order and on its memory, and time each.

    Layers see the caches as their predecessors leave them, as in a real run; about 1 us a call is
    Python's own.
    """
    program, tensors = executable.program, executable.memory.tensors
    calls = [
        (executable.kernel(c.kernel), [tensors[n] for n in c.args], c.layer) for c in program.calls
    ]
    times = np.zeros((runs, len(calls)))
    for run in range(-2, runs):
        for i, (function, args, _) in enumerate(calls):
            start = time.perf_counter()
            function(*args)
            if run >= 0:
                times[run, i] = time.perf_counter() - start
    median = np.median(times, axis=0)
    by_layer: dict[str, float] = {}
    for (_, _, name), seconds in zip(calls, median, strict=True):
        by_layer[name] = by_layer.get(name, 0.0) + float(seconds)
    peak = executable.target.fma_peak * default_threads()
    plans = {layer.name: layer for layer in executable.plan}
    rows = []
    for name, seconds in by_layer.items():
        plan = plans.get(name)
        rate = plan.gflop / seconds if plan else 0.0
        rows.append(
            LayerTime(
                name, plan.algorithm if plan else "layout_transform", seconds * 1e3, rate,
                rate * 1e9 / peak, plan.estimate_us / 1e3 if plan else 0.0,
            )
        )  # fmt: skip
    return Profile(tuple(rows))
