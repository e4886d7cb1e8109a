"""Products with a constant right side, and the checks that their algorithms share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.schedules import oracles
from tests.schedules.kernels import HOST, TARGETS, Case, assembly, fma_lines, run
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.workload import MatmulWorkload

TOLERANCE = 2e-6  # of the largest output; a sum of a few hundred float32 products


def workload(m: int, k: int, n: int, **fields: object) -> MatmulWorkload:
    """An m x k by k x n product."""
    fields = {"out_shape": (m, n), **fields}
    return MatmulWorkload((), m, n, k, packed=True, **fields)


def case(name: str, w: MatmulWorkload, **params: object) -> tuple[Case, np.ndarray]:
    """A product of random numbers and its result."""
    data = oracles.random((*w.out_shape[:-1], w.k), 1)
    weight = oracles.random((w.n, w.k) if w.transpose_b else (w.k, w.n), 2)
    operands = oracles.operands_of(w)
    matrix = (weight.T if w.transpose_b else weight).astype("float64")
    expected = oracles.finished(data.astype("float64") @ matrix, w, operands)
    return Case(name, w, [data], [weight], operands, params=params), expected


def assert_epilogue_and_transposed_weights(name: str, rows: int) -> None:
    """A bias, a residual and a relu, with the weights in either order."""
    epilogue = oracles.residual_epilogue(Operand((41,), "float32"), (rows, 41))
    w = workload(rows, 20, 41, epilogue=epilogue)
    cases = {t: case(name, replace(w, transpose_b=t)) for t in (False, True)}
    oracles.agree(cases, TOLERANCE)


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
    expected = data.astype("float64") @ weight
    actual = run(name, w, data=[data], weights=[weight])
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def assert_uses_vectors(name: str, target: str, m: int) -> None:
    """The multiply-adds of another target are on its widest vectors, and nothing is spilled."""
    lines = fma_lines(assembly(name, workload(m, 64, 128), TARGETS[target]))
    assert any(("zmm" if target == "avx512" else "fmla\tv") in line for line in lines)
    # Accumulators stay in registers: the loops store nothing but results.
    assert not any("(%rsp)" in line or "[sp" in line for line in lines)
