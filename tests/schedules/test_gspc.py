"""Grouped spatial pack convolution against NumPy in float64, and the thesis' reshaped weights."""

from __future__ import annotations

import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import (
    CASES,
    GROUPED,
    TOLERANCE,
    assert_matches_numpy,
    assert_refuses_float16,
    assert_rows_around_the_vector,
    assert_special_values_stay,
    assert_uses_vectors,
    case,
)
from tests.schedules.kernels import HOST, TARGETS, run
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.base import algorithms


@pytest.mark.parametrize("over", ["channels", "columns"])
def test_matches_numpy(over: str) -> None:
    assert_matches_numpy("gspc", {**CASES, **GROUPED}, over=over, width=1)


def test_rows_around_the_vector() -> None:
    assert_rows_around_the_vector("gspc")


def test_parameters_change_the_loops_only() -> None:
    w = conv_workload(12, (10, 10), 12, 3, 1, 1)
    cases = {
        "columns": case("gspc", w, chunk=3, t_i=3, t_o=6, unroll_kw=False),
        "channels": case("gspc", w, chunk=3, t_i=2, t_o=12, over="channels", width=3),
    }
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("over", ["channels", "columns"])
def test_groups_do_not_see_each_other(over: str) -> None:
    """A NaN in one group leaves the other group's outputs as they are."""
    w = conv_workload(6, (5, 6), 8, 3, 1, 1, groups=2)
    poisoned, expected = case("gspc", w, over=over)
    poisoned.data[0][:, 3:] = float("nan")
    result = run("gspc", w, data=poisoned.data, weights=poisoned.weights, params={"over": over})
    assert abs(result[:, :4] - expected[:, :4]).max() < 1e-4
    assert (result[:, 4:] != result[:, 4:]).all()


def test_special_values_stay_in_their_windows() -> None:
    assert_special_values_stay("gspc")


def test_weights_have_the_seven_dimensions_of_algorithm_3() -> None:
    w, gspc = conv_workload(12, (8, 8), 24, 3, 1, 1, groups=2), algorithms()["gspc"]
    params = {**gspc.default(w, HOST), "t_i": 3, "t_o": 4}
    weight = oracles.random((24, 6, 3, 3), 1)
    packed = gspc.pack(w, params, HOST, [weight])[0]
    assert packed.shape == (2, 12 // 4, 6 // 3, 3, 3, 3, 4)
    # W'[j][k][c][h][w][ci][co] = W[j K + k T_O + co][c T_I + ci][h][w]
    assert packed[1, 2, 1, 0, 2, 2, 3] == weight[12 + 2 * 4 + 3, 1 * 3 + 2, 0, 2]


def test_tiles_obey_equation_5_1() -> None:
    w, gspc = conv_workload(12, (8, 8), 24, 3, 1, 1, groups=2), algorithms()["gspc"]
    params = gspc.default(w, HOST)
    assert gspc.check(w, {**params, "t_o": 24}, HOST).startswith("gspc.t_o = 24 is not one of")
    assert gspc.check(w, {**params, "t_i": 4}, HOST).startswith("gspc.t_i = 4 is not one of")


def test_estimated_time_falls_with_the_number_of_groups() -> None:
    """What the method promises: groups divide the work."""
    gspc, times = algorithms()["gspc"], []
    for groups in (1, 2, 4, 8):
        w = conv_workload(64, (28, 28), 64, 3, 1, 1, groups=groups)
        times.append(gspc.cost(w, gspc.default(w, HOST), HOST))
    assert times == sorted(times, reverse=True)
    assert times[0] > 3 * times[-1]


def test_refusals() -> None:
    assert_refuses_float16("gspc")


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_use_their_vectors(target: str) -> None:
    assert_uses_vectors("gspc", target)
