"""`sparse_gemv_block`: a few rows with weights in blocks, against NumPy in float64."""

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

NAME = "sparse_gemv_block"
VECTORS = {"avx512": "zmm", "avx2": "ymm", "neon": ".4s"}


def test_sizes_around_the_panels() -> None:
    cases = {}
    for m, k, n in ((1, 1, 1), (1, 33, 129), (2, 17, 16), (3, 40, 21), (8, 25, 47)):
        matrix = sparse_weights((n, k), 0.4, rows=8)
        cases[m, k, n] = sparse_case(NAME, workload(m, k, n), matrix)
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("outputs", [4, 8, 16])
def test_panels(outputs: int) -> None:
    matrix = sparse_weights((50, 30), 0.4, outputs)
    w = workload(2, 30, 50)
    oracles.agree({outputs: sparse_case(NAME, w, matrix, outputs=outputs)}, TOLERANCE)


def test_any_density() -> None:
    assert_any_density(NAME, 2)


def test_views() -> None:
    assert_views(NAME, 3, outputs=8)


def test_what_is_zero_is_not_multiplied() -> None:
    assert_special_values_stay(NAME, 3, outputs=16)


def test_same_bits_on_any_threads() -> None:
    matrix = sparse_weights((70, 40), 0.3, rows=8)
    assert_same_whatever_the_threads(sparse_case(NAME, workload(2, 40, 70), matrix, pieces=3)[0])


def test_balanced_by_what_is_kept() -> None:
    """The first panel keeps all columns, the other seven keep four each."""
    matrix = np.zeros((128, 28), "float32")
    matrix[:16], matrix[16:, :4] = 1, 1
    w = replace(workload(1, 28, 128), sparsity=Sparsity.of(matrix))
    params = {"outputs": 16, "pieces": 2}
    values, columns, pointers, shares = algorithms()[NAME].pack(w, params, HOST, [matrix.T])
    assert shares.tolist() == [0, 1, 8]
    assert pointers.tolist() == [0, 28, *range(32, 57, 4)]
    assert values.shape == (56, 16)
    assert columns.dtype == "uint16"


def test_refusals() -> None:
    assert_refusals(NAME, 2)
    assert algorithms()[NAME].supports(pruned(9, 20, 41, 0.2), HOST).reason == "9 rows; at most 8"


def test_panels_that_fit_the_registers() -> None:
    avx2 = resolve("core-avx2")
    assert algorithms()[NAME].space(pruned(8, 20, 41, 0.2), avx2)["outputs"] == (4, 8)
    assert algorithms()[NAME].space(pruned(1, 20, 41, 0.2), avx2)["outputs"] == (4, 8, 16)


def test_cheaper_than_dense_where_few_columns_are_kept() -> None:
    for m in (1, 4):
        few, many = pruned(m, 1024, 2048, 0.5, outputs=16), pruned(m, 1024, 2048, 0.9)
        assert 1.5 * seconds(NAME, few) < seconds("gemv", few)
        assert seconds(NAME, many) > seconds("gemv", many)


@pytest.mark.parametrize("target", VECTORS)
def test_targets(target: str) -> None:
    cpu = {**TARGETS, "avx2": resolve("core-avx2")}[target]
    w = pruned(2, 64, 128, 0.3, outputs=16)
    assert_keeps_sums_in_registers(NAME, w, cpu, VECTORS[target])
