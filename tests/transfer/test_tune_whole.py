"""Changes that lose in the whole model are undone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules.kernels import HOST
from tests.transfer.tuning import network
from tvm_ext import planner
from tvm_ext.executable import Executable
from tvm_ext.transfer import tune_whole
from tvm_ext.transfer.tune_model import grouped
from tvm_ext.transfer.tune_whole import RoundOptions, built, compare, keep_winners, layer_seconds

MODEL = grouped(network(6, 4), HOST)
PLAN = planner.choose(MODEL.layers, HOST)
NAMES = [entry.name for entry in PLAN if entry.algorithm != "view"]


def changed(*names: str) -> dict[str, object]:
    """Entries with another source, which changes no code."""
    return {name: replace(PLAN[name], source="tuned") for name in names}


def test_winners_stay_and_losers_go(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def faked(a: Executable, b: Executable, _: RoundOptions) -> tuple[float, float]:
        before, after = ([e.source for e in x.plan].count("tuned") for x in (a, b))
        seen.append((before, after))
        return 1.0, 2.0 if b.plan[NAMES[2]].source == "tuned" else 0.5

    monkeypatch.setattr(tune_whole, "compare", faked)
    groups = [changed(NAMES[0]), changed(NAMES[2]), changed(NAMES[1])]
    found = keep_winners(MODEL, PLAN, groups, HOST)
    assert [e.name for e in found if e.source == "tuned"] == NAMES[:2]
    # The second comparison starts from the first winner, the third doesn't have the loser.
    assert seen == [(0, 1), (1, 2), (1, 2)]
    assert PLAN[NAMES[0]].source == "default"


def test_without_changes_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_whole, "built", None)
    assert keep_winners(MODEL, PLAN, [], HOST) is PLAN


def test_times() -> None:
    exe = built(MODEL, PLAN, HOST)
    seconds = layer_seconds(exe, runs=3)
    assert set(NAMES) <= set(seconds)
    assert not [name for name in seconds if ":" in name]
    assert all(0 < s < 1 for s in compare(exe, exe, RoundOptions(2, 0.001)))
