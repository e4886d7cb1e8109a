"""`conv_gemm` against NumPy in float64, and the im2col order of its weights."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import (
    CASES,
    GROUPED,
    TOLERANCE,
    assert_channels_around_the_vector,
    assert_matches_numpy,
    assert_refuses_float16,
    assert_special_values_stay,
    assert_uses_vectors,
    case,
)
from tests.schedules.kernels import HOST, TARGETS
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.base import algorithms

V = HOST.lanes


def test_matches_numpy() -> None:
    assert_matches_numpy("conv_gemm", CASES, layouts=((0, V), (V, V)))


def test_channels_around_the_vector() -> None:
    assert_channels_around_the_vector("conv_gemm", (0, V))


def test_parameters_change_the_loops_only() -> None:
    w = conv_workload(12, (10, 10), 3 * V + 1, 3, 1, 1, batch=2)
    cases = {
        "uneven chunks": case("conv_gemm", w, (V, V), chunk=30, pieces=2, tile=4, blocks=1),
        "chunk of one": case("conv_gemm", w, (0, V), chunk=1, pieces=3, tile=1, blocks=2),
    }
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("block", [0, V])
def test_special_values_stay_in_their_windows(block: int) -> None:
    assert_special_values_stay("conv_gemm", (block, V))


def test_weights_follow_the_rows_of_im2col() -> None:
    w, algorithm = conv_workload(3, (5, 5), V + 2, 2), algorithms()["conv_gemm"]
    weight = oracles.random((V + 2, 3, 2, 2), 1)
    params = {**algorithm.default(w, HOST), "blocks": 1}
    (panels,) = algorithm.pack(w, params, HOST, [weight])
    assert panels.shape == (2, 12, 1, V)
    # Row (tap y, tap x, channel), column = output channel; missing channels are zero.
    assert panels[1, (1 * 2 + 0) * 3 + 2, 0, 1] == weight[V + 1, 2, 1, 0]
    np.testing.assert_array_equal(panels[1, :, 0, 2:], 0)


def test_refusals_and_illegal_parameters() -> None:
    algorithm, w = algorithms()["conv_gemm"], CASES["3x3"]
    grouped = GROUPED["groups of 3 and 5"]
    assert algorithm.supports(grouped, HOST).reason == "3 groups; only 1"
    assert_refuses_float16("conv_gemm")
    params = algorithm.default(w, HOST)
    assert "conv_gemm.chunk = 101" in algorithm.check(w, {**params, "chunk": 101}, HOST)


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_use_their_vectors(target: str) -> None:
    block = TARGETS[target].lanes
    assert_uses_vectors("conv_gemm", target, (block, block))
