"""Products with sparse weights, and the checks that their algorithms share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.schedules import oracles, strided
from tests.schedules.kernels import AVX512, HOST, Case, assembly, fma_lines, run, run_all
from tests.schedules.products import TOLERANCE, workload
from tests.schedules.sparse_weights import sparse_weights
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.sparsity import Sparsity, summarize
from tvm_ext.target import CpuTarget

TYPICAL = replace(AVX512, is_host=False, cores=2, l1d=32 << 10, l2=1 << 20, l3=32 << 20)


def with_residual(m: int, k: int, n: int) -> MatmulWorkload:
    """A product with a bias, a residual and a relu."""
    epilogue = oracles.residual_epilogue(Operand((n,), "float32"), (m, n))
    return workload(m, k, n, epilogue=epilogue)


def sparse_case(
    name: str, w: MatmulWorkload, matrix: np.ndarray, **params: object
) -> tuple[Case, np.ndarray]:
    """A product of random numbers with an (n, k) matrix of weights, and its result."""
    w = replace(w, sparsity=Sparsity.of(matrix))
    weight = np.zeros(w.rhs_shape, "float32")
    strided.seen(weight, w.rhs)[...] = matrix.T
    data, operands = oracles.random(w.lhs_shape, 1), oracles.operands_of(w)
    result = strided.seen(data, w.lhs).astype("float64") @ matrix.T
    expected = strided.stored(oracles.finished(result, w, operands), w)
    return Case(name, w, [data], [weight], operands, params=params), expected


def assert_any_density(name: str, rows: int) -> None:
    """No weight, all of them, and bands of outputs between the two."""
    k, band = 37, 19
    bands = [sparse_weights((band, k), d) for d in (0, 0.01, 0.3, 1)]
    one = np.zeros((band, k), "float32")
    one[4, 36] = 1.5
    empty = oracles.random((band, k), 3)
    empty[3:17] = 0
    empty[:, 2:9] = 0
    mixed = np.concatenate([*bands, one, empty])
    matrices = {"bands": mixed, "none": np.zeros((band, k), "float32"), "all": bands[-1]}
    cases = {
        key: sparse_case(name, with_residual(rows, k, len(x)), x) for key, x in matrices.items()
    }
    oracles.agree(cases, TOLERANCE)


def assert_views(name: str, rows: int, outputs: int = 1) -> None:
    """Weights in either order, rows that one stride walks, on either side, and batches of rows."""
    k, n = 20, 41
    matrix = sparse_weights((n, k), 0.4, outputs)
    turned = StridedView.contiguous((n, k)).permute((1, 0))
    part = StridedView.contiguous((rows, 3, k)).slice(1, 1, 1).reshape((rows, k))
    assert part is not None
    wider = StridedView.contiguous((rows, 50)).slice(1, 5, n)
    workloads = {
        "transposed": replace(with_residual(rows, k, n), rhs=turned, rhs_shape=(n, k)),
        "read": MatmulWorkload.of((rows, 3, k), (k, n), lhs=part, packed=True),
        "stored": MatmulWorkload.of((rows, k), (k, n), (rows, 50), out=wider, packed=True),
        "batches": MatmulWorkload.of((rows, 1, 1, k), (k, n), packed=True),
    }
    cases = {key: sparse_case(name, w, matrix) for key, w in workloads.items()}
    strided.agree(cases, TOLERANCE)


def assert_special_values_stay(name: str, rows: int, outputs: int = 1) -> None:
    """NaN and an infinity reach what has a weight for them, in their rows alone."""
    k, n = 19, 48
    matrix = np.abs(sparse_weights((n, k), 0.5, outputs))
    matrix[:, 0] = 1
    data = np.abs(oracles.random((rows, k), 1))
    expected = data.astype("float64") @ matrix.T
    data[0, 7] = np.nan
    expected[0, matrix[:, 7] != 0] = np.nan
    data[-1, 11] = np.inf
    reached = matrix[:, 11] != 0
    expected[-1, reached] += np.inf
    w = replace(workload(rows, k, n), sparsity=Sparsity.of(matrix))
    actual = run(name, w, data=[data], weights=[np.ascontiguousarray(matrix.T)])
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def assert_refusals(name: str, rows: int) -> None:
    """Weights without zeros, of another dtype or unknown, and rows in no order."""
    supports = algorithms()[name].supports
    w = pruned(rows, 20, 41, 0.2)
    assert supports(w, HOST)
    assert supports(replace(w, sparsity=None), HOST).reason == "hardly any weight is zero"
    assert supports(replace(w, dtype="float16"), HOST).reason == "dtype float16; only float32"
    reason = "packed is False; only a constant right side"
    assert supports(replace(w, packed=False), HOST).reason == reason
    turned = StridedView.contiguous((41, rows)).permute((1, 0))
    wrong = replace(w, out=turned, out_shape=(41, rows))
    if rows > 1:
        assert supports(wrong, HOST).reason == f"the result's last stride is {rows}; only 1"


def pruned(m: int, k: int, n: int, density: float, outputs: int = 1) -> MatmulWorkload:
    """A product of which the planner knows how sparse its weights are."""
    matrix = sparse_weights((n, k), density, outputs)
    return replace(workload(m, k, n), sparsity=summarize(matrix))


def seconds(name: str, w: MatmulWorkload) -> float:
    """The estimate, on a target that isn't measured, for the parameters that it leads to."""
    algorithm = algorithms()[name]
    return algorithm.cost(w, algorithm.default(w, TYPICAL), TYPICAL)


def assert_keeps_sums_in_registers(
    name: str, w: MatmulWorkload, target: CpuTarget, vector: str
) -> None:
    """The multiply-adds of a target are on vectors of that name, and nothing is spilled."""
    lines = fma_lines(assembly(name, w, target))
    assert any(vector in line for line in lines)
    assert not any("(%rsp)" in line or "[sp" in line for line in lines)


def assert_same_whatever_the_threads(case: Case) -> None:
    """Several pieces make the bits that one makes."""
    alone = replace(case, params={**case.params, "pieces": 1})
    many, one = run_all([case, alone])
    np.testing.assert_array_equal(many, one)
