"""Time inference engines against each other fairly.

Rules that this file keeps, and why:

- Engines are interleaved in one process (A B C A B C ...), and ratios are medians of per-round
  ratios: what slows the machine for a while slows every engine of the round.
- Before each slice the harness sleeps and makes one untimed call. Thread pools spin for a while
  after a call (ONNX Runtime's for 60 ms; for TVM's see `benchmarks.tvm_threads`), which takes a
  core from the engine that runs next; the sleep outlasts that, the call wakes the engine up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from benchmarks.engines import Engine


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
