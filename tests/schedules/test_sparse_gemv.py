"""`sparse_gemv`: one row with scattered weights, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import HOST, TARGETS
from tests.schedules.products import TOLERANCE, workload
from tests.schedules.sparse_products import (
    assert_any_density,
    assert_keeps_sums_in_registers,
    assert_refusals,
    assert_same_whatever_the_threads,
    assert_special_values_stay,
    assert_views,
    pruned,
    seconds,
    sparse_case,
)
from tests.schedules.sparse_weights import sparse_weights
from tvm_ext.schedules.base import algorithms
from tvm_ext.sparsity import Sparsity
from tvm_ext.target import resolve

NAME = "sparse_gemv"
VECTORS = {"avx512": "xmm", "avx2": "xmm", "neon": ".4s"}


def test_sizes_around_the_panels() -> None:
    cases = {}
    for k, n in ((1, 1), (33, 5), (17, 16), (64, 129)):
        cases[k, n] = sparse_case(NAME, workload(1, k, n), sparse_weights((n, k), 0.4))
    oracles.agree(cases, TOLERANCE)


def test_columns_beyond_two_bytes() -> None:
    k = (1 << 16) + 9
    matrix = sparse_weights((6, k), 0.001)
    matrix[:, -1] = 1
    case, expected = sparse_case(NAME, workload(1, k, 6), matrix)
    assert case.workload.k == k
    oracles.agree({"int32": (case, expected)}, 1e-5)


def test_any_density() -> None:
    assert_any_density(NAME, 1)


def test_views() -> None:
    assert_views(NAME, 1)


def test_what_is_zero_is_not_multiplied() -> None:
    assert_special_values_stay(NAME, 1)


def test_same_bits_on_any_threads() -> None:
    matrix = sparse_weights((70, 40), 0.3)
    assert_same_whatever_the_threads(sparse_case(NAME, workload(1, 40, 70), matrix, pieces=3)[0])


def test_balanced_by_nonzeros() -> None:
    """The first 16 outputs have as many weights as the other 112."""
    matrix = np.zeros((128, 28), "float32")
    matrix[:16], matrix[16:, :4] = 1, 1
    w = replace(workload(1, 28, 128), sparsity=Sparsity.of(matrix))
    params = {"outputs": 16, "pieces": 2}
    values, columns, pointers, _, shares = algorithms()[NAME].pack(w, params, HOST, [matrix.T])
    assert shares.tolist() == [0, 1, 8]
    assert pointers.tolist() == [0, 28, *range(32, 57, 4)]
    assert values.shape == columns.shape == (56, 16)
    assert columns.dtype == "uint16"


def test_refusals() -> None:
    assert_refusals(NAME, 1)
    assert algorithms()[NAME].supports(pruned(2, 20, 41, 0.2), HOST).reason == "2 rows; only 1"


def test_cheaper_than_dense_where_few_weights_are_left() -> None:
    few, many = pruned(1, 1024, 2048, 0.1), pruned(1, 1024, 2048, 0.9)
    assert 3 * seconds(NAME, few) < seconds("gemv", few)
    assert seconds(NAME, many) > seconds("gemv", many)


def test_small_weights_may_be_in_cache() -> None:
    """Then reading fewer of them gains nothing, and gathering costs what it costs."""
    w = pruned(1, 256, 256, 0.3)
    assert seconds(NAME, w) > seconds("gemv", w)


@pytest.mark.parametrize("target", VECTORS)
def test_targets(target: str) -> None:
    cpu = {**TARGETS, "avx2": resolve("core-avx2")}[target]
    assert_keeps_sums_in_registers(NAME, pruned(1, 64, 128, 0.3), cpu, VECTORS[target])
