"""Changes that lose in the whole model are undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.schedules.kernels import HOST
from tests.transfer.tuning import network
from tvm_ext import planner
from tvm_ext.executable import Executable
from tvm_ext.grouped_model import grouped
from tvm_ext.plan import Plan
from tvm_ext.transfer import tune_whole
from tvm_ext.transfer.tune_whole import (
    Change,
    RoundOptions,
    built,
    compare,
    is_faster,
    keep_winners,
    layer_seconds,
)

MODEL = grouped(network(6, 4), HOST)
PLAN = planner.choose(MODEL.layers, HOST)
NAMES = [entry.name for entry in PLAN if entry.algorithm != "view"]


def changed(*names: str, gain_s: float = 0.5) -> Change:
    """Entries with another source, which changes no code."""
    return Change({name: replace(PLAN[name], source="tuned") for name in names}, gain_s)


def tuned(plan: Plan) -> list[str]:
    return [entry.name for entry in plan if entry.source == "tuned"]


class Model:
    """Stands for `compare`: a model's seconds by its changed layers; keeps what was asked."""

    def __init__(self, seconds: Callable[[list[str]], float]) -> None:
        self.asked: list[tuple[list[str], list[str]]] = []
        self._seconds = seconds

    def compare(
        self, a: Executable, b: Executable, _: RoundOptions
    ) -> tuple[list[float], list[float]]:
        self.asked.append((tuned(a.plan), tuned(b.plan)))
        return [self._seconds(tuned(a.plan))], [self._seconds(tuned(b.plan))]


def test_changes_that_keep_their_promise_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(lambda names: 3.0 - 0.45 * len(names))
    monkeypatch.setattr(tune_whole, "compare", model.compare)
    found = keep_winners(
        MODEL, built(MODEL, PLAN, HOST), [changed(name) for name in NAMES[:3]], HOST
    )
    assert tuned(found) == NAMES[:3]
    assert model.asked == [([], NAMES[:3])]


def test_winners_stay_and_losers_go(monkeypatch: pytest.MonkeyPatch) -> None:
    a, loser, b = NAMES[:3]
    model = Model(lambda names: 3.0 - 0.5 * len(names) + 1.5 * (loser in names))
    monkeypatch.setattr(tune_whole, "compare", model.compare)
    found = keep_winners(
        MODEL, built(MODEL, PLAN, HOST), [changed(name) for name in (a, loser, b)], HOST
    )
    assert tuned(found) == [a, b]
    # All; the first half; its members one by one; the second half, on what was kept.
    assert model.asked == [
        ([], [a, loser, b]), ([], [a, loser]), ([], [a]), ([a], [a, loser]), ([a], [a, b]),
    ]  # fmt: skip
    assert PLAN[a].source == "default"


def test_a_clear_difference_needs_three_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(tune_whole.time, "perf_counter", lambda: float(next(clock)))

    class Runs:
        def __init__(self, steps: int) -> None:
            self.steps, self.rounds = steps, 0

        def run(self) -> None:
            self.rounds += 1
            for _ in range(self.steps):
                next(clock)

    fast, slow, near = Runs(10), Runs(20), Runs(10)
    options = RoundOptions(rounds=7, round_s=0.0)
    before, after = compare(slow, fast, options)
    assert min(before) > 1.5 * max(after) and fast.rounds == slow.rounds == 3
    compare(fast, near, options)
    assert near.rounds == 7


@pytest.mark.parametrize(
    ("after", "faster"),
    [
        ([0.9] * 7, True),
        # One round may be disturbed, two may not; half a percent may be chance.
        ([0.9] * 6 + [1.1], True),
        ([0.9] * 5 + [1.1] * 2, False),
        ([0.995] * 7, False),
        ([1.0] * 7, False),
        ([0.9], True),
    ],
)
def test_what_counts_as_faster(after: list[float], faster: bool) -> None:
    assert is_faster([1.0] * len(after), after) is faster


def test_without_changes_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    start = built(MODEL, PLAN, HOST)
    monkeypatch.setattr(tune_whole, "built", None)
    assert keep_winners(MODEL, start, [], HOST) is PLAN


def test_times() -> None:
    exe = built(MODEL, PLAN, HOST)
    seconds = layer_seconds(exe, runs=3)
    assert set(NAMES) <= set(seconds)
    assert not [name for name in seconds if ":" in name]
    assert all(0 < s < 1 for own in compare(exe, exe, RoundOptions(2, 0.001)) for s in own)
