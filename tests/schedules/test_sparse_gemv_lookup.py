"""`sparse_gemv_lookup`: one row with scattered weights, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST, NEON
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
from tvm_ext.schedules.table_lookup import table_lookup
from tvm_ext.sparsity import Sparsity
from tvm_ext.target import CpuTarget, resolve

NAME = "sparse_gemv_lookup"
AVX2 = resolve("core-avx2")
SIZES = ((1, 1), (33, 5), (17, 16), (31, 17), (32, 64), (64, 129), (100, 70))

here = pytest.mark.skipif(table_lookup(HOST) is None, reason=f"{HOST.isa} has no lookup")


@here
@pytest.mark.parametrize("target", [HOST, AVX2], ids=["host", "avx2"])
def test_sizes_around_tables_and_panels(target: CpuTarget) -> None:
    cases = {
        (k, n): sparse_case(NAME, workload(1, k, n), sparse_weights((n, k), 0.4)) for k, n in SIZES
    }
    oracles.agree(cases, TOLERANCE, target)


@here
@pytest.mark.parametrize("target", [HOST, AVX2], ids=["host", "avx2"])
@pytest.mark.parametrize("panels", [1, 2, 4])
def test_slots(panels: int, target: CpuTarget) -> None:
    """Too few for the nonzeros of most tables, and more than there are."""
    matrix = sparse_weights((70, 100), 0.2)
    algorithm, w = algorithms()[NAME], workload(1, 100, 70)
    cases = {
        slots: sparse_case(NAME, w, matrix, slots=slots, panels=panels)
        for slots in algorithm.space(w, target)["slots"]
        if not algorithm.check(w, {"slots": slots, "panels": panels, "pieces": 1}, target)
    }
    assert len(cases) > 1
    oracles.agree(cases, TOLERANCE, target)


@here
def test_any_density() -> None:
    assert_any_density(NAME, 1)


@here
def test_views() -> None:
    assert_views(NAME, 1)


@here
def test_what_is_zero_is_not_multiplied() -> None:
    assert_special_values_stay(NAME, 1)


@here
def test_same_bits_on_any_threads() -> None:
    matrix = sparse_weights((140, 40), 0.3)
    case, _ = sparse_case(NAME, workload(1, 40, 140), matrix, panels=1, pieces=2)
    assert_same_whatever_the_threads(case)


def test_packed() -> None:
    """The first 16 outputs have 28 weights in one table, 22 more than slots."""
    matrix = np.zeros((128, 31), "float32")
    matrix[:16, :28], matrix[16:, :4] = 1, 2
    w = replace(workload(1, 31, 128), sparsity=Sparsity.of(matrix))
    params = {"slots": 6, "panels": 1, "pieces": 2}
    slots, words, groups, values, columns, pointers, _, shares = algorithms()[NAME].pack(
        w, params, AVX512, [matrix.T]
    )
    assert slots.shape == (8, 1, 1, 6, 16)
    assert slots[0].min() == 1
    assert (slots[1:, :, :, :4] == 2).all()
    assert not slots[1:, :, :, 4:].any()
    assert words.shape == (8, 1, 1, 1, 16)
    assert int(words[1, 0, 0, 0, 0]) == sum(i << 5 * p for p, i in enumerate((0, 1, 2, 3, 31, 31)))
    # What has no slot is work of the first group, so that the second piece has more groups.
    assert groups.tolist() == shares.tolist()
    assert 0 < groups[1] < 4
    assert pointers.tolist() == [0] + [22] * 8
    assert values.shape == columns.shape == (22, 16)


def test_refusals() -> None:
    if table_lookup(HOST) is not None:
        assert_refusals(NAME, 1)
    supports = algorithms()[NAME].supports
    assert supports(pruned(2, 20, 41, 0.2), AVX512).reason == "2 rows; only 1"
    reason = "neon has no lookup of 32-bit lanes; only avx2 and avx512"
    assert supports(pruned(1, 20, 41, 0.2), NEON).reason == reason


def test_sums_beyond_the_registers() -> None:
    params = {"slots": 6, "panels": 4, "pieces": 1}
    check = algorithms()[NAME].check
    assert check(pruned(1, 64, 128, 0.2), params, AVX512) == ""
    problem = check(pruned(1, 64, 128, 0.2), params, AVX2)
    assert problem == f"{NAME}: slots x panels = 24; at most 11, the registers for sums"


def test_cheaper_than_gathering_where_tables_hold_several_weights() -> None:
    many, few = pruned(1, 1024, 2048, 0.15), pruned(1, 1024, 2048, 0.002)
    assert 1.2 * seconds(NAME, many) < seconds("sparse_gemv", many)
    assert seconds(NAME, few) > seconds("sparse_gemv", few)


@pytest.mark.parametrize(("target", "vector"), [(AVX512, "zmm"), (AVX2, "ymm")])
def test_registers(target: CpuTarget, vector: str) -> None:
    assert_keeps_sums_in_registers(NAME, pruned(1, 64, 128, 0.15), target, vector)
