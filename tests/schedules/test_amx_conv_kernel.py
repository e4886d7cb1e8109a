"""Convolution on AMX against NumPy in float64, on machines that have it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules import convolutions, oracles, pooled_convolutions, prologues
from tests.schedules.amx_kernels import BLOCKED, HIGH, TOLERANCE, needs_amx
from tests.schedules.kernels import Case, run_all, same_on_any_threads
from tests.schedules.oracles import conv_workload

NAME = "amx_conv"
CASES = {k: w for k, w in convolutions.CASES.items() if len(w.spatial) < 3}
# Those behind which a band has other rows than its pool stage's windows in full.
STAGES = (
    *pooled_convolutions.FEW, "3x3 stride 2, ceil", "3x3 stride 1", "uneven padding",
    "stride past the kernel", "one window",
)  # fmt: skip
pytestmark = needs_amx


def _case(w: Any, **params: Any) -> tuple[Case, np.ndarray]:
    return convolutions.case(NAME, oracles.with_residual(w), BLOCKED, **params)


def test_matches_numpy() -> None:
    oracles.agree({key: _case(w) for key, w in CASES.items()}, TOLERANCE, HIGH)


def test_channels_around_the_tiles() -> None:
    cases = {
        (inputs, outputs): _case(conv_workload(inputs, (6, 7), outputs, 3, 1, 1, batch=3))
        for inputs, outputs in ((15, 16), (16, 17), (17, 15), (31, 33), (32, 47), (33, 48), (65, 5))
    }
    oracles.agree(cases, TOLERANCE, HIGH)


def test_parameters_change_the_loops_only() -> None:
    w = conv_workload(40, (13, 11), 70, 3, 1, 1, batch=2)
    chosen = [
        {"tile": 1, "down": 1, "across": 1, "rows": 13, "pieces": 1},
        {"tile": 16, "down": 2, "across": 2, "rows": 4, "pieces": 1},
        {"tile": 7, "down": 1, "across": 3, "rows": 1, "pieces": 1},
        {"tile": 15, "down": 2, "across": 1, "rows": 6, "pieces": 4},
        {"tile": 3, "down": 2, "across": 2, "rows": 13, "pieces": 5},
    ]
    oracles.agree({i: _case(w, **params) for i, params in enumerate(chosen)}, TOLERANCE, HIGH)
    same_on_any_threads([_case(w, **chosen[i])[0] for i in (2, 3)], HIGH)


@pytest.mark.parametrize(("products", "bound"), [(3, 2.0**-15), (4, 2.0**-16), (6, 2.0**-23)])
def test_errors_are_within_the_bound_of_the_terms(products: int, bound: float) -> None:
    """For values whose terms are as large as they get, too, and have one sign."""
    w = conv_workload(48, (9, 10), 32, 3, 1, 1)
    rng = np.random.default_rng(0)
    shapes = (w.in_shape, (32, 48, 3, 3))
    hard = [
        (1 + rng.choice([2.0**-8, 2.0**-9, 3 * 2.0**-10], s) + 127 * 2.0**-23).astype("float32")
        for s in shapes
    ]
    plain = [oracles.random(s, i) for i, s in enumerate(shapes)]
    cases = [
        Case(NAME, w, [x], [weight], layout=BLOCKED, params={"products": products})
        for x, weight in (hard, plain)
    ]
    for (x, weight), found in zip((hard, plain), run_all(cases, HIGH), strict=True):
        sizes = oracles.conv(w, np.abs(x), np.abs(weight))
        # float32 sums of as many numbers as there are instructions, and of pairs in each.
        sums = products * 9 * 2 * 17 * 2.0**-24
        error = np.abs(found - oracles.conv(w, x, weight)) / sizes
        assert error.max() <= bound + sums
        assert error.mean() < bound / 2 + 2.0**-21


def test_six_products_are_as_good_as_float32() -> None:
    some = ("3x3", "7x7 stride 2", "1d", "5x5 odd channels")
    cases = {key: _case(CASES[key], products=6) for key in some}
    oracles.agree(cases, convolutions.TOLERANCE, HIGH)


def test_prologue() -> None:
    """Padding stays zero, and lanes past the last channel aren't read."""
    cases = {
        (key, change.__name__): prologues.case(NAME, change(CASES[key]), BLOCKED)
        for key in ("7x7 stride 2", "5x5 odd channels", "batch 2")
        for change in (prologues.with_prologue, prologues.with_sigmoid)
    }
    oracles.agree(cases, TOLERANCE, HIGH)


@pytest.mark.parametrize("params", [{}, {"rows": 5, "pieces": 2, "across": 1}], ids=str)
def test_pool_stages(params: dict[str, int]) -> None:
    w = conv_workload(40, (13, 12), 40, 3, 1, 1, batch=2)
    cases = {
        key: pooled_convolutions.case(NAME, pooled, BLOCKED, **params)
        for key, pooled in pooled_convolutions.stages(w).items()
        if key in (pooled_convolutions.FEW if params else STAGES)
    }
    oracles.agree(cases, TOLERANCE, HIGH)


def _run(w: Any, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    (found,) = run_all([Case(NAME, w, [data], [weight], layout=BLOCKED, missing=np.nan)], HIGH)
    return found


def test_nan_and_infinities_make_their_windows_nan() -> None:
    """An infinity has the rest NaN: what meets it is NaN, not infinite."""
    w = conv_workload(5, (8, 12), 32, 3, 1, 1)
    data, weight = oracles.random(w.in_shape, 1), oracles.random((32, 5, 3, 3), 2)
    data[0, 0, 0, 0], data[0, 1, 3, 11], data[0, 4, 7, 2] = np.nan, np.inf, -np.inf
    # NaN as other processors make it; and what bfloat16 rounds to infinity.
    data[0, 2, 5, 7] = np.array(0x7FFFFFFF, "uint32").view("float32")
    data[0, 3, 1, 5] = 3.4e38
    finite = np.where(np.abs(data) < 1e38, data, np.nan)
    expected = oracles.conv(w, finite, weight)
    found = _run(w, data, weight)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert np.isfinite(found).any()
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-3)


def test_subnormal_numbers_count_as_zero_and_zeros_have_no_sign_to_lose() -> None:
    w = conv_workload(8, (4, 5), 16, 1)
    weight = np.ones((16, 8, 1, 1), "float32")
    for value, want in ((1e-39, 0.0), (-0.0, 0.0), (2e-38, 16e-38)):
        found = _run(w, np.full(w.in_shape, value, "float32"), weight)
        np.testing.assert_allclose(found, np.full_like(found, want), rtol=2.0**-8)
    # Their products with large numbers, too.
    found = _run(w, np.full(w.in_shape, 1e-39, "float32"), weight * np.float32(1e38))
    np.testing.assert_array_equal(found, np.zeros_like(found))


def test_weights_of_nan_spread_to_their_outputs() -> None:
    w = conv_workload(40, (5, 6), 20, 3, 1, 1)
    data, weight = oracles.random(w.in_shape, 1), oracles.random((20, 40, 3, 3), 2)
    weight[3, 7, 1, 1], weight[18, 39, 1, 1] = np.nan, np.inf
    found = _run(w, data, weight)
    assert np.isnan(found[:, [3, 18]]).all()
    others = np.delete(np.arange(20), [3, 18])
    expected = oracles.conv(replace(w, out_channels=18), data, weight[others])
    np.testing.assert_allclose(found[:, others], expected, atol=2e-3, rtol=1e-3)
