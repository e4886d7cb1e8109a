"""Products with a constant right side, and their expected results."""

from __future__ import annotations

import numpy as np

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, NEON, Case, assembly, run
from tvm_ext.schedules.workload import MatmulWorkload

TOLERANCE = 2e-6  # of the largest output; a sum of a few hundred float32 products
TARGETS = {"avx512": AVX512, "neon": NEON}


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
    text = assembly(name, workload(m, 64, 128), TARGETS[target])
    lines = [line for line in text.splitlines() if "vfmadd" in line or "fmla" in line]
    assert any(("zmm" if target == "avx512" else "fmla\tv") in line for line in lines)
    # Accumulators stay in registers: the loops store nothing but results.
    assert not any("(%rsp)" in line or "[sp" in line for line in lines)
