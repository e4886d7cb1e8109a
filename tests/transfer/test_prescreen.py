"""Rankings against known times: made-up ones, and those of real kernels measured here."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tvm import relax

from tests.passes.relax_models import array, const, module
from tests.schedules.kernels import HOST
from tests.transfer.matmul_schedules import (
    ALL,
    Tiles,
    candidate,
    matmul,
    records,
    scalar,
    scheduled,
)
from tvm_ext.schedules.tuned import trace_text
from tvm_ext.transfer.prescreen import LEAST_RECORDS, Prescreen
from tvm_ext.transfer.tune_candidates import transferred
from tvm_ext.transfer.tune_measure import MeasureOptions, Measurer
from tvm_ext.transfer.tune_options import TuningOptions, TuningProgress
from tvm_ext.transfer.tune_store import workload_key
from tvm_ext.transfer.tuned_record import TunedRecord
from tvm_ext.tune import tune

TARGET = matmul(128)
CANDIDATES = [candidate(scheduled(TARGET, tiles)) for tiles in ALL]
TRUE = np.array([tiles.seconds(TARGET) for tiles in ALL])
SMALL, LARGE = records(64), records(160)


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's, for values without ties."""
    return float(np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1])


def test_an_unseen_size_is_ranked_as_the_known_time_does() -> None:
    model = Prescreen.fit(SMALL + LARGE, HOST)
    assert isinstance(model, Prescreen)
    assert model.records == len(SMALL + LARGE) == 128
    order, scores = model.rank(CANDIDATES)
    assert sorted(order) == list(range(len(CANDIDATES)))
    assert (np.diff(scores[order]) <= 0).all()
    assert rank_correlation(-scores, TRUE) >= 0.9
    # A tenth of them holds one of nearly the best time.
    kept, left_out = model.screened(iter(CANDIDATES), 0.1)
    assert (len(kept), left_out) == (7, 57)
    assert kept == [CANDIDATES[i] for i in order[:7]]
    assert TRUE[order[:7]].min() <= TRUE.min() / 0.97


def test_few_noisy_records_and_failed_ones() -> None:
    """A third of the records, times up to 10 % off; whatever has no vectors has failed."""
    rng = np.random.default_rng(5)
    noisy = [
        replace(r, seconds=r.seconds * rng.uniform(0.9, 1.1) if tiles.vector else math.inf)
        for r, tiles in zip(SMALL + LARGE, ALL + ALL, strict=True)
        if rng.random() < 0.34
    ]
    assert 30 <= len(noisy) <= 60
    model = Prescreen.fit(noisy, HOST)
    assert isinstance(model, Prescreen)
    _, scores = model.rank(CANDIDATES)
    vector = np.array([tiles.vector for tiles in ALL])
    assert rank_correlation(-scores[vector], TRUE[vector]) >= 0.8
    assert scores[vector].min() > scores[~vector].max()


def test_the_same_seed_gives_the_same_scores() -> None:
    first, again, other = (Prescreen.fit(SMALL, HOST, seed) for seed in (1, 1, 2))
    assert isinstance(first, Prescreen)
    assert isinstance(again, Prescreen)
    assert isinstance(other, Prescreen)
    scores = first.rank(CANDIDATES)[1]
    np.testing.assert_array_equal(scores, again.rank(CANDIDATES)[1])
    assert (scores != other.rank(CANDIDATES)[1]).any()


def test_what_is_too_little_to_learn_from() -> None:
    needed = "comparable donors' records; pre-screening needs 16"
    assert LEAST_RECORDS == 16
    assert Prescreen.fit([], HOST) == f"0 {needed}"
    assert Prescreen.fit(SMALL[:15], HOST) == f"15 {needed}"
    assert isinstance(Prescreen.fit(SMALL[:16], HOST), Prescreen)
    # A record alone can't be compared, and a kernel that always failed has no best.
    assert Prescreen.fit([*SMALL[:15], LARGE[0]], HOST) == f"15 {needed}"
    failed = [replace(r, seconds=math.inf) for r in LARGE]
    assert Prescreen.fit([*SMALL[:15], *failed], HOST) == f"15 {needed}"
    broken = replace(SMALL[15], trace="[[], 1]")
    assert Prescreen.fit([*SMALL[:15], broken], HOST) == f"15 {needed}"


def test_nothing_to_rank() -> None:
    model = Prescreen.fit(SMALL, HOST)
    assert isinstance(model, Prescreen)
    order, scores = model.rank([])
    assert order == []
    assert scores.shape == (0,)
    assert model.screened([], 0.1) == ([], 0)
    assert model.screened(CANDIDATES[:3], 0.01)[1] == 2


def test_measured_kernels_bad_schedules_come_last(tmp_path: Path) -> None:
    """Trained on a product of 48, asked about one of 64: scalar and untiled against tiled."""
    known, asked = matmul(48), matmul(64)
    shapes = [Tiles(r, c, True, True) for r in (2, 4, 8) for c in (8, 16)]
    shapes += [Tiles(r, c, False, False) for r in (1, 2, 4) for c in (4, 8, 16)]
    schedules = [scalar(known), *(scheduled(known, tiles) for tiles in shapes)]
    good = [scheduled(asked, Tiles(r, 16, True, True)) for r in (4, 8)]
    bad = [scalar(asked), scheduled(asked, Tiles(1, 4, False, False))]
    # The median of many short runs: other processes of a test run take turns of their own.
    options = MeasureOptions(repeats=9, least_ms=2.0)
    with Measurer(HOST, tmp_path, options) as measurer:
        found = measurer.measure(
            [(known, s.mod) for s in schedules] + [(asked, s.mod) for s in good + bad]
        )
    assert [m.failure for m in found] == [""] * len(found)
    times = [m.seconds for m in found]
    *known_s, good_1, good_2, bad_1, bad_2 = times
    # Else there is nothing to be told apart.
    assert max(good_1, good_2) < min(bad_1, bad_2)
    function = known.workload.function
    key = workload_key(function)
    model = Prescreen.fit(
        [
            TunedRecord(function, key, trace_text(s.trace), seconds, "here")
            for s, seconds in zip(schedules, known_s, strict=True)
        ],
        HOST,
    )
    assert isinstance(model, Prescreen), model
    order, _ = model.rank([candidate(s) for s in bad + good])
    assert set(order[:2]) == {2, 3}


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_shares_are_rounded_up(share: float) -> None:
    model = Prescreen.fit(SMALL, HOST)
    assert isinstance(model, Prescreen)
    kept, left_out = model.screened(CANDIDATES[:5], share)
    assert (len(kept), left_out) == ((3, 2) if share == 0.5 else (5, 0))


def test_without_measurement_the_first_of_the_ranking_is_taken() -> None:
    records = [replace(r, seconds=r.seconds * 1e-6) for r in SMALL + LARGE]
    mod = module({"x": (128, 128)}, lambda _, x: relax.op.matmul(x, const(array(4, 128, 128))))
    told: list[TuningProgress] = []
    plan = tune(
        mod, budget_s=0, donors={"products": records}, progress=told.append,
        options=TuningOptions(prescreen=0.1),
    )  # fmt: skip
    every = list(transferred(TARGET.workload.function, records, HOST))
    model = Prescreen.fit(records, HOST)
    assert isinstance(model, Prescreen)
    order, _ = model.rank(every)
    (entry,) = plan
    assert entry.source == "transfer"
    assert entry.params["trace"] == every[order[0]].trace
    (at,) = told
    assert (at.measured, at.note) == (0, "")
    assert at.screened == len(every) - math.ceil(len(every) / 10) >= 2
    assert at.latency_us == pytest.approx(every[order[0]].predicted_s * 1e6)


def test_without_measurement_too_few_records_are_told() -> None:
    mod = module({"x": (128, 128)}, lambda _, x: relax.op.matmul(x, const(array(4, 128, 128))))
    told: list[TuningProgress] = []
    options = TuningOptions(prescreen=0.1, progress=told.append)
    few = {"few": [replace(SMALL[0], seconds=1e-12)]}
    (entry,) = tune(mod, budget_s=0, donors=few, options=options)
    assert entry.source == "transfer"
    assert [(at.note, at.screened) for at in told] == [
        ("0 comparable donors' records; pre-screening needs 16", 0)
    ]
