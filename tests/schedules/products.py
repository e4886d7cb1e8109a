"""Products with a constant right side, and the checks that their algorithms share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.schedules import oracles, strided
from tests.schedules.kernels import HOST, TARGETS, Case, assembly, fma_lines, run, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView

TOLERANCE = 2e-6  # of the largest output; a sum of a few hundred float32 products


def workload(m: int, k: int, n: int, **fields: object) -> MatmulWorkload:
    """An m x k by k x n product."""
    return MatmulWorkload.of((m, k), (k, n), packed=True, **fields)


def case(name: str, w: MatmulWorkload, **params: object) -> tuple[Case, np.ndarray]:
    """A product of random numbers and its result."""
    data, weight = oracles.random(w.lhs_shape, 1), oracles.random(w.rhs_shape, 2)
    operands = oracles.operands_of(w)
    result = strided.seen(data, w.lhs).astype("float64") @ strided.seen(weight, w.rhs)
    expected = strided.stored(oracles.finished(result, w, operands), w)
    return Case(name, w, [data], [weight], operands, params=params), expected


def assert_epilogue_and_transposed_weights(name: str, rows: int) -> None:
    """A bias, a residual and a relu, with the weights in either order."""
    epilogue = oracles.residual_epilogue(Operand((41,), "float32"), (rows, 41))
    w = workload(rows, 20, 41, epilogue=epilogue)
    turned = replace(w, rhs=StridedView.contiguous((41, 20)).permute((1, 0)), rhs_shape=(41, 20))
    oracles.agree({"as is": case(name, w), "transposed": case(name, turned)}, TOLERANCE)


def assert_strided_rows(name: str, rows: int) -> None:
    """Rows that one stride walks, on either side; no others."""
    part = StridedView.contiguous((rows, 3, 20)).slice(1, 1, 1).reshape((rows, 20))
    assert part is not None
    read = MatmulWorkload.of((rows, 3, 20), (20, 41), lhs=part, packed=True)
    wider = StridedView.contiguous((rows, 50)).slice(1, 5, 41)
    stored = MatmulWorkload.of((rows, 20), (20, 41), (rows, 50), out=wider, packed=True)
    for w in (read, stored):
        (got,), want = run_all([case(name, w)[0]]), case(name, w)[1]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    supports = algorithms()[name].supports
    turned = StridedView.contiguous((20, rows)).permute((1, 0))
    w = MatmulWorkload.of((20, rows), (20, 41), lhs=turned, packed=True)
    assert supports(w, HOST).reason == f"the left side's last stride is {rows}; only 1"
    turned = StridedView.contiguous((41, rows)).permute((1, 0))
    w = MatmulWorkload.of((rows, 20), (20, 41), (41, rows), out=turned, packed=True)
    assert supports(w, HOST).reason == f"the result's last stride is {rows}; only 1"
    heads = StridedView.contiguous((rows, 2, 20)).permute((1, 0, 2))
    w = MatmulWorkload.of((rows, 2, 20), (20, 41), lhs=heads, packed=True)
    assert supports(w, HOST).reason == "batch (2,) can't be walked as rows by one stride"


def assert_takes_constant_float32_only(name: str, w: MatmulWorkload) -> None:
    """Refusals of another dtype, and of a right side that is only known at run time."""
    algorithm = algorithms()[name]
    assert "float16" in algorithm.supports(replace(w, dtype="float16"), HOST).reason
    assert "packed is False" in algorithm.supports(replace(w, packed=False), HOST).reason


def assert_special_values_stay(name: str, rows: int) -> None:
    """A row with NaN and a row with an infinity leave the others as they are."""
    w = workload(rows, 19, 21)
    data, weight = oracles.random((rows, 19), 1), np.abs(oracles.random((19, 21), 2))
    data[0, 3], data[-1, 18] = np.nan, -np.inf
    with np.errstate(invalid="ignore"):  # raised by lanes of OpenBLAS that nothing reads
        expected = data.astype("float64") @ weight
    actual = run(name, w, data=[data], weights=[weight])
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def assert_uses_vectors(name: str, target: str, m: int) -> None:
    """The multiply-adds of another target are on its widest vectors, and nothing is spilled."""
    lines = fma_lines(assembly(name, workload(m, 64, 128), TARGETS[target]))
    assert any(("zmm" if target == "avx512" else "fmla\tv") in line for line in lines)
    # Accumulators stay in registers: the loops store nothing but results.
    assert not any("(%rsp)" in line or "[sp" in line for line in lines)
