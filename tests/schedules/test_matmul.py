"""`matmul`: products with a constant right side, against NumPy in float64."""

from __future__ import annotations

import pytest

from tests.schedules import oracles
from tests.schedules.kernels import HOST, TARGETS
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
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.matmul_workload import MatmulWorkload


def test_sizes_around_the_tile() -> None:
    sizes = [(m, 17, n) for m in (5, 6, 7, 13) for n in (7, 8, 9, 33)]
    sizes += [(1, 1, 1), (130, 96, 47), (1, 64, 40)]
    oracles.agree({size: case("matmul", workload(*size)) for size in sizes}, TOLERANCE)


def test_epilogue_and_transposed_weights() -> None:
    assert_epilogue_and_transposed_weights("matmul", 11)


def test_operands_are_broadcast_against_all_leading_dimensions() -> None:
    shape = (2, 3, 4, 10)
    epilogue = oracles.residual_epilogue(Operand((2, 1, 4, 10), "float32"), shape)
    w = MatmulWorkload.of((2, 3, 4, 9), (9, 10), packed=True, epilogue=epilogue)
    oracles.agree({"rank 4": case("matmul", w)}, TOLERANCE)


def test_strided_rows() -> None:
    assert_strided_rows("matmul", 11)


def test_blocked_loops() -> None:
    w, cases = workload(23, 64, 100), {}
    for name, value in (("k_parts", 4), ("chunks", 3), ("pieces", 3)):
        cases[name] = case("matmul", w, **{name: value})
        cases[name, "4x1"] = case("matmul", w, **{name: value, "tile": 4, "blocks": 1})
    oracles.agree(cases, TOLERANCE)


def test_refusals_name_the_property() -> None:
    assert_takes_constant_float32_only("matmul", workload(8, 8, 8))


def test_illegal_parameters_are_named() -> None:
    w, matmul = workload(8, 12, 8), algorithms()["matmul"]
    params = matmul.default(w, HOST)
    assert "matmul.k_parts = 5" in matmul.check(w, {**params, "k_parts": 5}, HOST)
    assert "no parameter 'unroll'" in matmul.check(w, {**params, "unroll": 2}, HOST)


def test_special_values_stay_in_their_rows() -> None:
    assert_special_values_stay("matmul", 9)


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_use_their_vectors(target: str) -> None:
    assert_uses_vectors("matmul", target, 64)
