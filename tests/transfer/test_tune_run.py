"""The order, the budget and the resumption of a run, with times that are made up."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, matmul_layer, program, record
from tests.transfer.tuning import OPTIONS, network
from tvm_ext.grouped_model import grouped
from tvm_ext.transfer.tune_candidates import transferred
from tvm_ext.transfer.tune_measure import Measurement
from tvm_ext.transfer.tune_options import TuningProgress
from tvm_ext.transfer.tune_run import TuningRun
from tvm_ext.transfer.tune_store import TuningStore
from tvm_ext.transfer.tune_task import tune_tasks
from tvm_ext.transfer.tuned_record import TunedRecord

LAYERS = grouped(network(6, 4), HOST).layers
NAMES = [layer.name for layer in LAYERS if "reshape" not in layer.name]
TASKS = tune_tasks(LAYERS, dict(zip(NAMES, (4e-6, 4e-6, 1e-6), strict=True)))
DONORS = [record(conv(8, 8, 8, 3, 1, ("relu",)), 1e-6, number) for number in range(3)] + [
    record(program(matmul_layer()), 1e-6)
]


class Measurer:
    """Gives one time after the other; notes what was asked."""

    workers = HOST.cores

    def __init__(self, *seconds: float) -> None:
        self.seconds, self.asked = iter(seconds), list[tuple[str, ...]]()

    def measure(self, candidates: Sequence[tuple[Any, Any]]) -> list[Measurement]:
        self.asked += [p.workload.ops for p, _ in candidates]
        times = [next(self.seconds, 1e-3) for _ in candidates]
        return [Measurement(s, "crashed" if math.isinf(s) else "") for s in times]


def run(store: TuningStore, measurer: Measurer, **options: Any) -> TuningRun:
    told: list[TuningProgress] = []
    chosen = replace(OPTIONS, progress=told.append, **options)
    now = time.monotonic()
    made = TuningRun(
        TASKS, store, measurer, HOST, chosen, 9e-6, now, now + (chosen.budget_s or math.inf)
    )  # type: ignore[arg-type]
    made.told = told  # type: ignore[attr-defined]
    return made


def test_kernels_take_turns_and_the_best_counts(tmp_path: Path) -> None:
    measurer = Measurer(2e-6, math.inf, 1e-6)
    with TuningStore(tmp_path) as store:
        made = run(store, measurer)
        made.transfer(DONORS)
        assert measurer.asked[:3] == [
            ("nn.conv2d", "nn.relu"),
            ("matmul",),
            ("nn.conv2d", "nn.relu"),
        ]
        convolution, product = TASKS
        assert made.best(convolution).seconds == 1e-6  # type: ignore[union-attr]
        assert made.best(convolution).trace in made.from_donors  # type: ignore[union-attr]
        best = made.best(product)
        assert best is None or best.seconds == 1e-3
        last = made.told[-1]  # type: ignore[attr-defined]
    # 2 x 4 us have become 2 x 1 us, of 9 us in all.
    assert last.latency_us == pytest.approx(3.0)
    assert (last.measured, last.failed) == (len(measurer.asked), 1)


def test_trials_end_it_and_count_what_is_there(tmp_path: Path) -> None:
    with TuningStore(tmp_path) as store:
        first, second, third = Measurer(), Measurer(), Measurer()
        run(store, first, trials=3).transfer(DONORS)
        assert (len(first.asked), len(store)) == (3, 3)
        made = run(store, second, trials=4)
        made.transfer(DONORS)
        assert (len(second.asked), len(store)) == (1, 4)
        assert len(made.from_donors) == 4
        run(store, third, trials=4).transfer(DONORS)
        assert third.asked == []


def test_a_budget_that_is_spent_ends_it(tmp_path: Path) -> None:
    measurer = Measurer()
    with TuningStore(tmp_path) as store:
        made = replace(run(store, measurer), deadline=time.monotonic())
        made.transfer(DONORS)
        made.search()
    assert measurer.asked == []


def test_the_search_goes_where_most_is_to_be_won(tmp_path: Path) -> None:
    measurer = Measurer(*[1.6e-6] * 8)
    with TuningStore(tmp_path) as store:
        run(store, measurer, method="search", trials=8).search()
        assert len(store) == 8
        assert {r.failed for r in store} == {False}
    # 8 us, which become 3.2 us, over the rounds and one, against 1 us: 8, 1.6, 1.07, then 0.8.
    assert measurer.asked[::2] == [("nn.conv2d", "nn.relu")] * 3 + [("matmul",)]


def test_a_search_starts_from_transferred_records(tmp_path: Path) -> None:
    with TuningStore(tmp_path) as store:
        made = run(store, Measurer(), method="transfer+search", trials=8)
        made.transfer(DONORS[:1])
        transferred = len(store)
        made.search()
        assert 1 <= transferred < len(store) <= 8
        assert len({(r.workload, r.trace) for r in store}) == len(store)


def test_the_last_round_is_cut_to_the_trials(tmp_path: Path) -> None:
    """A run that was killed inside a round has an odd number of records."""
    with TuningStore(tmp_path) as store:
        run(store, Measurer(), trials=1).transfer(DONORS)
        assert len(store) == 1
        run(store, Measurer(), method="search", trials=4).search()
        assert len(store) == 4


def conv_record(size: int, number: int) -> TunedRecord:
    return record(conv(8, 8, size, 3, 1, ("relu",)), (1 + number) * 1e-6, number)


def slowed(records: Sequence[TunedRecord], copies: int) -> list[TunedRecord]:
    """The records, and so many slower ones of each, which are never tried."""
    return [replace(r, seconds=r.seconds * (1 + n)) for r in records for n in range(copies + 1)]


def test_a_prescreen_leaves_candidates_out_and_tells_how_many(tmp_path: Path) -> None:
    donors = [r for d in (8, 10) for n in range(3) for r in slowed([conv_record(d, n)], 2)]
    every = {
        c.trace for task in TASKS for c in transferred(task.program.workload.function, donors, HOST)
    }
    with TuningStore(tmp_path) as store:
        measurer = Measurer()
        made = run(store, measurer, prescreen=0.5)
        made.transfer(donors)
        first, *_, last = made.told  # type: ignore[attr-defined]
        assert (first.measured, first.layer, first.note) == (0, "", "")
        assert last.note == ""
        assert len(measurer.asked) == last.measured == math.ceil(len(every) / 2)
        assert last.screened == len(every) - last.measured > 0
        # A killed run goes on with the same ones.
        again = Measurer()
        run(store, again, prescreen=0.5).transfer(donors)
        assert again.asked == []


def test_without_enough_records_all_are_measured_and_it_is_told(tmp_path: Path) -> None:
    with TuningStore(tmp_path / "a") as a, TuningStore(tmp_path / "b") as b:
        screened, plain = Measurer(), Measurer()
        made = run(a, screened, prescreen=0.1)
        made.transfer(DONORS)
        run(b, plain).transfer(DONORS)
        assert [(r.workload, r.trace) for r in a] == [(r.workload, r.trace) for r in b]
        told = made.told  # type: ignore[attr-defined]
    needed = "3 comparable donors' records; pre-screening needs 16"
    assert {(at.note, at.screened) for at in told} == {(needed, 0)}
