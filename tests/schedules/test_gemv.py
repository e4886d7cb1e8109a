"""`gemv`: products of a few rows with a constant right side, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import HOST, TARGETS, run
from tests.schedules.products import (
    TOLERANCE,
    assert_epilogue_and_transposed_weights,
    assert_special_values_stay,
    assert_strided_rows,
    assert_takes_constant_float32_only,
    assert_uses_vectors,
    case,
    workload,
)
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.flattened import reordered
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView


def test_rows_and_columns_around_the_tile() -> None:
    sizes = [(m, k, n) for m in (1, 2, 3, 4) for k, n in ((33, 5), (64, 129))]
    cases = {size: case("gemv", workload(*size)) for size in [*sizes, (1, 1, 1)]}
    cases["shared among threads"] = case("gemv", workload(1, 512, 1000), pieces=3)
    cases["narrow panels"] = case("gemv", workload(2, 40, 100), blocks=1)
    oracles.agree(cases, TOLERANCE)


def test_epilogue_and_transposed_weights() -> None:
    assert_epilogue_and_transposed_weights("gemv", 3)


def test_strided_rows() -> None:
    assert_strided_rows("gemv", 3)


def test_batch_dimensions_are_rows() -> None:
    w = MatmulWorkload.of((2, 1, 2, 30), (30, 50), packed=True)
    oracles.agree({"rank 4": case("gemv", w)}, TOLERANCE)


def test_flattened_maps_of_blocks() -> None:
    """Weights as they are and transposed; the data in blocks, the rows of the weights moved."""
    shape, n, v = (2, 3 * HOST.lanes, 2, 3), 21, HOST.lanes
    k = prod(shape[1:])
    data, weight = oracles.random(shape, 1), oracles.random((k, n), 2)
    plain = MatmulWorkload.of(
        shape, (k, n), lhs=StridedView.contiguous((2, k)), packed=True, out_shape=(2, n)
    )
    turned = replace(plain, rhs=StridedView.contiguous((n, k)).permute((1, 0)), rhs_shape=(n, k))
    want = data.reshape(2, k).astype("float64") @ weight
    for w, stored in ((plain, weight), (turned, np.ascontiguousarray(weight.T))):
        assert algorithms()["gemv"].layouts(w, HOST) == ((0, 0), (v, 0))
        for block in (0, v):
            got = run(
                "gemv", w, data=[data], weights=[reordered(w, stored, block)], layout=(block, 0)
            )
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_special_values_stay_in_their_rows() -> None:
    assert_special_values_stay("gemv", 3)


def test_only_large_products_are_shared_among_threads() -> None:
    gemv, four = algorithms()["gemv"], replace(HOST, cores=4)
    assert gemv.default(workload(1, 64, 256), four)["pieces"] == 1
    assert gemv.default(workload(1, 4096, 4096), four)["pieces"] == 4


def test_refusals_and_illegal_parameters() -> None:
    gemv, w = algorithms()["gemv"], workload(2, 8, 64)
    assert gemv.supports(workload(8, 8, 8), HOST).reason == "8 rows; at most 4"
    assert_takes_constant_float32_only("gemv", w)
    params = gemv.default(w, HOST)
    assert "gemv.blocks = 99 is not one of" in gemv.check(w, {**params, "blocks": 99}, HOST)


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_use_their_vectors(target: str) -> None:
    assert_uses_vectors("gemv", target, 1)
