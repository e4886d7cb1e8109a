"""`conv_direct` against NumPy in float64: any convolution, on the model's own layout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import (
    CASES,
    GROUPED,
    TARGETS,
    TOLERANCE,
    assert_special_values_stay,
    assert_uses_vectors,
    case,
)
from tests.schedules.kernels import HOST
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.base import algorithms


def test_matches_numpy() -> None:
    workloads = {**CASES, **GROUPED}
    cases = {k: case("conv_direct", oracles.with_residual(w)) for k, w in workloads.items()}
    oracles.agree(cases, TOLERANCE)


def test_rows_around_the_vector() -> None:
    cases = {
        width: case("conv_direct", conv_workload(4, (3, width), 6, 3, 1, 1, groups=2))
        for width in (7, 8, 9, 15, 16, 17)
    }
    oracles.agree(cases, TOLERANCE)


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
    algorithm, w = algorithms()["conv_direct"], CASES["3x3"]
    reason = algorithm.supports(replace(w, dtype="float16"), HOST).reason
    assert reason == "dtype float16; only float32"
    params = algorithm.default(w, HOST)
    # Padded input can't be read in place.
    problem = algorithm.check(w, {**params, "stage": False}, HOST)
    assert problem == "conv_direct.stage = False is not one of [True]"
    assert "conv_direct.chunk = 11" in algorithm.check(w, {**params, "chunk": 11}, HOST)


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_use_their_vectors(target: str) -> None:
    assert_uses_vectors("conv_direct", target)
