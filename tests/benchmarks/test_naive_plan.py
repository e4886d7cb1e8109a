"""TVM's default for every kernel."""

from __future__ import annotations

import numpy as np

from benchmarks.naive_plan import naive_plan
from tests.schedules.kernels import HOST
from tests.transfer.tuning import network
from tvm_ext import planner
from tvm_ext.grouped_model import grouped
from tvm_ext.transfer.tune_whole import built

MODEL = grouped(network(size=6, filters=4), HOST)
PLAN = planner.choose(MODEL.layers, HOST)


def test_every_kernel_is_without_a_schedule() -> None:
    naive = naive_plan(MODEL, PLAN, HOST)
    costly = [entry.name for entry in PLAN if entry.estimate_us > 0]
    assert len(costly) == 3
    for name in costly:
        assert naive[name].algorithm == "tuned"
        assert naive[name].params["trace"] == "[[], []]"
        assert naive[name].layout == [text.rstrip("0123456789c") for text in PLAN[name].layout]
    # 4 filters of 6x6 pixels, each a sum of 4 x 3 x 3: four cycles of 1/3 ns for each step.
    assert np.isclose(naive[costly[0]].estimate_us, 4 * 6 * 6 * 4 * 9 * 4 / 3e3)
    free = [entry.name for entry in PLAN if entry.estimate_us == 0]
    assert [naive[name] for name in free] == [PLAN[name] for name in free]


def test_it_computes_the_same() -> None:
    ours, naive = (built(MODEL, plan, HOST) for plan in (PLAN, naive_plan(MODEL, PLAN, HOST)))
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype("float32")
    np.testing.assert_allclose(naive(x), ours(x), rtol=1e-5, atol=1e-6)
