"""`batch_matmul`: products of two run-time tensors, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, fma_lines
from tests.schedules.products import TOLERANCE
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.workload import MatmulWorkload


def workload(batch: tuple[int, ...], m: int, k: int, n: int, **fields: object) -> MatmulWorkload:
    fields = {"out_shape": (*batch, m, n), **fields}
    return MatmulWorkload((int(np.prod(batch)),), m, n, k, packed=False, **fields)


def case(
    w: MatmulWorkload, right_lead: tuple[int, ...] | None = None, **params: object
) -> tuple[Case, np.ndarray]:
    lead = w.out_shape[:-2] if right_lead is None else right_lead
    left = oracles.random((*w.out_shape[:-1], w.k), 1)
    right = oracles.random((*lead, *((w.n, w.k) if w.transpose_b else (w.k, w.n))), 2)
    operands = oracles.operands_of(w)
    matrix = (np.swapaxes(right, -1, -2) if w.transpose_b else right).astype("float64")
    expected = oracles.finished(left.astype("float64") @ matrix, w, operands)
    return Case("batch_matmul", w, [left, right], [], operands, params=params), expected


def test_sizes_around_the_tile() -> None:
    sizes = [(1, 3), (5, 7), (6, 8), (7, 9), (30, 47)]
    cases = {
        (m, n, transposed): case(workload((2,), m, 17, n, transpose_b=transposed))
        for m, n in sizes
        for transposed in (False, True)
    }
    oracles.agree(cases, TOLERANCE)


def test_epilogue_over_two_batch_dimensions() -> None:
    shape = (2, 3, 13, 20)
    epilogue = oracles.residual_epilogue(Operand((2, 1, 1, 20), "float32"), shape)
    w = workload((2, 3), 13, 10, 20, epilogue=epilogue)
    oracles.agree({copy: case(w, copy=copy) for copy in (False, True)}, TOLERANCE)


def test_one_right_side_for_all_batches() -> None:
    w = MatmulWorkload((1,), 10, 9, 8, packed=False, out_shape=(2, 5, 9))
    # The right side may have a rank of its own.
    other = replace(w, rhs_shape=(8, 9))
    oracles.agree({"same rank": case(w, (1,)), "rank 2": case(other, ())}, TOLERANCE)


def test_blocked_loops() -> None:
    w = workload((2,), 23, 64, 50)
    changes = [("k_parts", 4), ("chunks", 3), ("pieces", 3)]
    oracles.agree({name: case(w, **{name: value}) for name, value in changes}, TOLERANCE)


def test_refusals_and_illegal_parameters() -> None:
    w, algorithm = workload((2,), 8, 8, 8), algorithms()["batch_matmul"]
    assert "packed is True" in algorithm.supports(replace(w, packed=True), HOST).reason
    transposed = replace(w, transpose_b=True)
    params = algorithm.default(transposed, HOST)
    problem = algorithm.check(transposed, {**params, "copy": False}, HOST)
    assert problem == "batch_matmul.copy = False is not one of [True]"


@pytest.mark.parametrize(("target", "fma"), [(AVX512, "zmm"), (NEON, "fmla\tv")])
def test_other_targets_use_their_vectors(target: object, fma: str) -> None:
    lines = fma_lines(assembly("batch_matmul", workload((2,), 64, 64, 64), target))
    assert any(fma in line for line in lines)
