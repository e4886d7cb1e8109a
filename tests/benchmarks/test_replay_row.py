"""Two small tasks measured, and records that can't be."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import replay_row
from benchmarks.replay_row import measure
from tvm_ext.target import resolve
from tvm_ext.transfer.ansor import shipped_records


def small(kind):
    """The task of this kind with the fewest operations."""
    tasks = [t for t in shipped_records() if kind in t.operators]
    return min(tasks, key=lambda task: task.flops)


@pytest.fixture(autouse=True)
def briefly(monkeypatch):
    monkeypatch.setattr(replay_row, "_FIRST", (1.0, 1))
    monkeypatch.setattr(replay_row, "_AGAIN", (1.0, 1))
    # The pool has the size that other tests gave it.
    monkeypatch.setattr(replay_row, "set_tvm_threads", lambda threads: None)


def test_a_convolution():
    task = small("conv2d")
    row = measure(replace(task, records=task.records[:2]), resolve())
    assert (row.tried, row.right, row.failures) == (2, 2, ())
    assert row.log_s == task.records[0].median
    assert 0 < row.best_s < 1
    assert row.best.split(", ")[0] in ("replayed", "vector_loops", "full_vectors")
    assert row.own[1] > 0
    assert np.isnan(row.rank)


def test_what_fails_is_told(monkeypatch):
    monkeypatch.setattr(replay_row, "LEAST_RECORDS", 2)
    task = small("softmax")
    good, other = task.records[:2]
    wrong = replace(good, steps=(("CI", 99),), source=replace(good.source, line=7))
    row = measure(replace(task, records=(good, other, wrong)), resolve())
    assert (row.tried, row.right, row.own) == (3, 2, None)
    assert row.failures == ("7: step 0: there is no stage 99; allowed: 0 to 4",)
    assert abs(row.rank) == pytest.approx(1)


def test_a_wrong_result_is_found(monkeypatch):
    monkeypatch.setattr(replay_row, "_TOLERANCE", -1.0)
    task = small("softmax")
    row = measure(replace(task, records=task.records[:1]), resolve())
    assert row.right == 0
    assert np.isnan(row.best_s)
    assert "relative error" in row.failures[0]
