"""`conv_direct` against NumPy in float64: any convolution, on the model's own layout."""

from __future__ import annotations

import pytest

from tests.schedules import oracles, pooled_convolutions
from tests.schedules.convolutions import (
    CASES,
    GROUPED,
    TOLERANCE,
    assert_matches_numpy,
    assert_refuses_float16,
    assert_rows_around_the_vector,
    assert_special_values_stay,
    assert_stages_padded_input,
    assert_uses_vectors,
    case,
)
from tests.schedules.kernels import HOST, TARGETS
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload


def test_matches_numpy() -> None:
    assert_matches_numpy("conv_direct", {**CASES, **GROUPED})


def test_rows_around_the_vector() -> None:
    assert_rows_around_the_vector("conv_direct")


def test_parameters_change_the_loops_only() -> None:
    w, valid = conv_workload(12, (10, 10), 12, 3, 1, 1), conv_workload(3, (9, 19), 5, 3)
    cases = {
        "uneven chunks": case("conv_direct", w, chunk=3, pieces=3, channels=5, high=2),
        "a piece past the end": case("conv_direct", w, channels=4, pieces=2),
        "in place": case("conv_direct", valid, stage=False),
        "staged": case("conv_direct", valid, stage=True),
    }
    oracles.agree(cases, TOLERANCE)


def test_special_values_stay_in_their_windows() -> None:
    assert_special_values_stay("conv_direct")


def test_refusals_and_illegal_parameters() -> None:
    assert_refuses_float16("conv_direct")
    assert_stages_padded_input("conv_direct")
    algorithm, w = algorithms()["conv_direct"], CASES["3x3"]
    params = algorithm.default(w, HOST)
    assert "conv_direct.chunk = 11" in algorithm.check(w, {**params, "chunk": 11}, HOST)


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_use_their_vectors(target: str) -> None:
    assert_uses_vectors("conv_direct", target)


def test_pools() -> None:
    w = conv_workload(5, (11, 13), 17, 3, 1, 1)
    pooled_convolutions.assert_matches_numpy("conv_direct", w, (0, 0), TOLERANCE)


@pytest.mark.parametrize(
    "w",
    [
        conv_workload(3, (22, 26), 8, 7, 2, 3),
        conv_workload(6, (9, 19), 9, 3, 1, 1, groups=3, batch=2),
        conv_workload(6, (9, 11), 9, 1),
    ],
    ids=["7x7 stride 2", "groups", "1x1"],
)
def test_pools_behind_other_convolutions(w: ConvWorkload) -> None:
    few = pooled_convolutions.FEW
    pooled_convolutions.assert_matches_numpy("conv_direct", w, (0, 0), TOLERANCE, few)


@pytest.mark.parametrize(
    "params",
    [{"chunk": 1, "pieces": 3, "high": 1}, {"chunk": 2, "channels": 5, "pieces": 2}],
    ids=["one row", "two rows"],
)
def test_pools_in_every_cut_of_the_rows(params: dict[str, int]) -> None:
    w, few = conv_workload(5, (11, 13), 12, 3, 1, 1), pooled_convolutions.FEW
    pooled_convolutions.assert_matches_numpy("conv_direct", w, (0, 0), TOLERANCE, few, **params)


def test_pools_special_values_on_any_threads() -> None:
    pooled_convolutions.assert_special_values_are_pooled("conv_direct", (0, 0))
    pooled_convolutions.assert_threads_change_no_bit("conv_direct", (0, 0), chunk=2, pieces=2)
    pooled_convolutions.assert_refuses_other_pools("conv_direct")


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_pool_in_vectors(target: str) -> None:
    pooled_convolutions.assert_uses_vectors("conv_direct", target)
