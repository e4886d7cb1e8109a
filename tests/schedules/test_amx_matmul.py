"""Packed matrix products on AMX, against NumPy in float64 on machines that have it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.amx_kernels import HIGH, SAPPHIRE, TOLERANCE, needs_amx
from tests.schedules.kernels import Case, assembly, run_all, same_on_any_threads
from tests.schedules.products import case, workload
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.target import resolve

NAME = "amx_matmul"
ALGORITHM = algorithms()[NAME]
TARGET = replace(SAPPHIRE, is_host=False, cores=2)


@needs_amx
def test_sizes_around_the_tiles() -> None:
    sizes = [(m, 17, n) for m in (5, 16, 33) for n in (7, 15, 16, 17, 33)]
    sizes += [(20, k, 40) for k in (1, 16, 31, 32, 33, 63, 64, 65)]
    sizes += [(1, 1, 1), (130, 96, 47), (1, 64, 40)]
    oracles.agree({size: case(NAME, workload(*size)) for size in sizes}, TOLERANCE, HIGH)


@needs_amx
def test_six_products_are_as_good_as_float32() -> None:
    cases = {k: case(NAME, workload(20, k, 40), products=6) for k in (20, 64, 300)}
    oracles.agree(cases, 2e-6, HIGH)


@needs_amx
def test_epilogue_and_transposed_weights() -> None:
    epilogue = oracles.residual_epilogue(Operand((41,), "float32"), (11, 41))
    w = workload(11, 20, 41, epilogue=epilogue)
    turned = replace(w, rhs=StridedView.contiguous((41, 20)).permute((1, 0)), rhs_shape=(41, 20))
    shape = (2, 3, 4, 10)
    broadcast = MatmulWorkload.of(
        (2, 3, 4, 9), (9, 10), packed=True,
        epilogue=oracles.residual_epilogue(Operand((2, 1, 4, 10), "float32"), shape),
    )  # fmt: skip
    cases = {"as is": w, "transposed": turned, "rank 4": broadcast}
    oracles.agree({key: case(NAME, w) for key, w in cases.items()}, TOLERANCE, HIGH)


@needs_amx
def test_strided_rows() -> None:
    part = StridedView.contiguous((11, 3, 40)).slice(1, 1, 1).reshape((11, 40))
    read = MatmulWorkload.of((11, 3, 40), (40, 41), lhs=part, packed=True)
    wider = StridedView.contiguous((11, 50)).slice(1, 5, 41)
    stored = MatmulWorkload.of((11, 40), (40, 41), (11, 50), out=wider, packed=True)
    for w in (read, stored):
        made, want = case(NAME, w)
        (got,) = run_all([made], HIGH)
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@needs_amx
def test_parameters_change_the_loops_only() -> None:
    w = workload(45, 70, 100)
    chosen = [
        {"tile": 1, "down": 1, "across": 1, "chunk": 45, "pieces": 1},
        {"tile": 16, "down": 2, "across": 2, "chunk": 32, "pieces": 1},
        {"tile": 7, "down": 1, "across": 3, "chunk": 10, "pieces": 1},
        {"tile": 4, "down": 2, "across": 2, "chunk": 20, "pieces": 4},
    ]
    cases = {i: case(NAME, w, **params) for i, params in enumerate(chosen)}
    oracles.agree(cases, TOLERANCE, HIGH)
    same_on_any_threads([cases[i][0] for i in (2, 3)], HIGH)


@needs_amx
def test_special_values_stay_in_their_rows() -> None:
    w = workload(9, 19, 21)
    data, weight = oracles.random((9, 19), 1), oracles.random((19, 21), 2)
    data[0, 3], data[8, 18] = np.nan, -np.inf
    (found,) = run_all([Case(NAME, w, [data], [weight])], HIGH)
    assert np.isnan(found[[0, 8]]).all()
    expected = data[1:8].astype("float64") @ weight
    np.testing.assert_allclose(found[1:8], expected, rtol=1e-3, atol=1e-4)


def test_refusals_name_the_property() -> None:
    w = workload(8, 8, 8)
    assert ALGORITHM.supports(w, TARGET)
    assert "float16" in ALGORITHM.supports(replace(w, dtype="float16"), TARGET).reason
    assert "packed is False" in ALGORITHM.supports(replace(w, packed=False), TARGET).reason
    reason = ALGORITHM.supports(w, resolve(TARGET, "highest")).reason
    assert reason == "precision highest; only high"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"chunk": 9}, "amx_matmul.chunk = 9 is not one of"),
        ({"down": 2, "across": 3}, "amx_matmul: 2 x 3 tiles of sums don't fit 8 registers"),
        ({"down": 2, "tile": 5}, "amx_matmul: 2 tiles of 5 are more than 8 positions"),
        ({"across": 4}, "amx_matmul.across = 4 is not one of [1, 2, 3]"),
    ],
)
def test_illegal_parameters_are_named(changes: dict[str, int], problem: str) -> None:
    w = workload(8, 12, 64)
    params = {**ALGORITHM.default(w, TARGET), "across": 2, "chunk": 8, **changes}
    assert ALGORITHM.check(w, params, TARGET).startswith(problem)


def test_defaults() -> None:
    w = workload(128, 384, 384)
    params = ALGORITHM.default(w, TARGET)
    assert (params["products"], params["tile"], params["down"], params["across"]) == (3, 16, 2, 2)
    assert ALGORITHM.tolerance(w, params) == 1e-3
    # One row can't be shared, columns can.
    assert ALGORITHM.default(workload(1, 2048, 4096), TARGET)["pieces"] == 2


def test_code() -> None:
    params = {"tile": 16, "down": 2, "across": 2, "chunk": 64, "pieces": 1, "products": 3}
    text = assembly(NAME, workload(64, 64, 128), SAPPHIRE, **params)
    # 2 x 2 tiles of sums, in a loop that LLVM may unroll.
    count = text.count("\ttdpbf16ps")
    assert count
    assert count % 12 == 0
