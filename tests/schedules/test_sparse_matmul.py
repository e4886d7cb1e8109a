"""`sparse_matmul` and `sparse_matmul_block`: many rows, against NumPy in float64."""

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
from tvm_ext.schedules.sparse_matmul_blocking import SparseBlocking
from tvm_ext.sparsity import Sparsity
from tvm_ext.target import resolve

# Each algorithm with how many neighbouring outputs share their zeros.
NAMES = {"sparse_matmul": 1, "sparse_matmul_block": 4}
VECTORS = {"avx512": "zmm", "avx2": "ymm", "neon": ".4s"}
both = pytest.mark.parametrize("name", NAMES)


@both
def test_sizes_around_the_vectors(name: str) -> None:
    cases = {}
    for m, k, n in ((2, 33, 21), (3, 3, 5), (7, 20, 48), (17, 40, 16), (33, 16, 31)):
        matrix = sparse_weights((n, k), 0.4, NAMES[name])
        cases[m, k, n] = sparse_case(name, workload(m, k, n), matrix)
    oracles.agree(cases, TOLERANCE)


@both
def test_parameters_change_the_loops_only(name: str) -> None:
    w, matrix = workload(40, 24, 50), sparse_weights((50, 24), 0.4, NAMES[name])
    changes = {
        "tiles of two sizes": {"chunks": 1, "vectors": 2, "k_parts": 1},
        "several chunks": {"chunks": 3, "vectors": 1, "k_parts": 1},
        "parts": {"chunks": 1, "vectors": 3, "k_parts": 3},
        "shared": {"chunks": 2, "vectors": 2, "k_parts": 4, "pieces": 3},
    }
    cases = {key: sparse_case(name, w, matrix, **params) for key, params in changes.items()}
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("outputs", [2, 8])
def test_panels(outputs: int) -> None:
    matrix = sparse_weights((50, 30), 0.4, outputs)
    case = sparse_case("sparse_matmul_block", workload(20, 30, 50), matrix, outputs=outputs)
    oracles.agree({outputs: case}, TOLERANCE)


@both
def test_any_density(name: str) -> None:
    assert_any_density(name, 9)


@both
def test_views(name: str) -> None:
    assert_views(name, 11, NAMES[name])


@both
def test_what_is_zero_is_not_multiplied(name: str) -> None:
    assert_special_values_stay(name, 9, outputs=16)


@both
def test_same_bits_on_any_threads(name: str) -> None:
    matrix = sparse_weights((70, 40), 0.3, NAMES[name])
    case, _ = sparse_case(name, workload(21, 40, 70), matrix, pieces=3)
    assert_same_whatever_the_threads(case)


def test_balanced_by_what_is_kept() -> None:
    """The first four outputs need all columns, the other 28 of seven strips four each."""
    matrix = np.zeros((32, 28), "float32")
    matrix[:4], matrix[4:, :4] = 1, 1
    w = replace(workload(4, 28, 32), sparsity=Sparsity.of(matrix))
    params = {"outputs": 2, "vectors": 1, "chunks": 1, "pieces": 2, "k_parts": 2}
    algorithm = algorithms()["sparse_matmul_block"]
    values, columns, pointers, shares = algorithm.pack(w, params, HOST, [matrix.T])
    assert shares.tolist() == [0, 2, 16]
    # In the first part 14 columns of two panels, then four of 14; in the second 14 of two.
    assert np.diff(pointers).tolist() == [14] * 2 + [4] * 14 + [14] * 2 + [0] * 14
    assert values.shape == (len(columns), 2)
    assert columns.max() == 13


def test_blocking_of_few_and_many_rows() -> None:
    few = SparseBlocking(3, 10, 12, 4, 1, 1, 1, 1)
    assert (few.chunk, few.tasks, few.positions, few.pitch, few.strips) == (3, 1, 1, 4, 3)
    many = SparseBlocking(100, 40, 12, 16, 8, 3, 2, 3)
    assert (many.chunk, many.tasks, many.positions, many.steps) == (64, 2, 4, 4)
    assert many.tiles == [(2, 2)]
    assert many.pitch == 5 * 16
    assert (many.strips, many.strip_panels) == (3, 2)


@both
def test_refusals(name: str) -> None:
    assert_refusals(name, 9)
    reason = algorithms()[name].supports(pruned(1, 20, 41, 0.2), HOST).reason
    assert reason == "1 rows; at least 2"
    w = pruned(9, 20, 41, 0.2)
    params = algorithms()[name].default(w, HOST)
    wrong = algorithms()[name].check(w, {**params, "k_parts": 3}, HOST)
    assert f"{name}.k_parts = 3 is not one of" in wrong


@both
def test_cheaper_than_dense_where_few_weights_are_left(name: str) -> None:
    few, many = (pruned(128, 1024, 1024, d, NAMES[name]) for d in (0.1, 0.9))
    assert 2 * seconds(name, few) < seconds("matmul", few)
    assert seconds(name, many) > seconds("matmul", many)


@both
@pytest.mark.parametrize("target", VECTORS)
def test_targets(name: str, target: str) -> None:
    cpu = {**TARGETS, "avx2": resolve("core-avx2")}[target]
    w = pruned(64, 64, 128, 0.3, outputs=16)
    assert_keeps_sums_in_registers(name, w, cpu, VECTORS[target])
