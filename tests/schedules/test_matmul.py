"""`matmul` and `gemv`: products with a constant right side, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly
from tvm_ext.schedules import gemm
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.workload import MatmulWorkload

TOLERANCE = 2e-6  # of the largest output; a sum of a few hundred float32 products


def workload(m: int, k: int, n: int, **fields: object) -> MatmulWorkload:
    fields = {"out_shape": (m, n), **fields}
    return MatmulWorkload((), m, n, k, packed=True, **fields)


def case(name: str, w: MatmulWorkload, **params: object) -> tuple[Case, np.ndarray]:
    data = oracles.random((*w.out_shape[:-1], w.k), 1)
    weight = oracles.random((w.n, w.k) if w.transpose_b else (w.k, w.n), 2)
    operands = oracles.operands_of(w)
    matrix = (weight.T if w.transpose_b else weight).astype("float64")
    expected = oracles.finished(data.astype("float64") @ matrix, w, operands)
    return Case(name, w, [data], [weight], operands, params=params), expected


def test_sizes_around_the_tile() -> None:
    sizes = [(m, 17, n) for m in (5, 6, 7, 13) for n in (7, 8, 9, 33)]
    sizes += [(1, 1, 1), (130, 96, 47), (1, 64, 40)]
    oracles.agree({size: case("matmul", workload(*size)) for size in sizes}, TOLERANCE)


def test_epilogue_and_transposed_weights() -> None:
    cases = {}
    for name, m in (("matmul", 11), ("gemv", 3)):
        epilogue = oracles.residual_epilogue(Operand((41,), "float32"), (m, 41))
        for transpose_b in (False, True):
            w = workload(m, 20, 41, transpose_b=transpose_b, epilogue=epilogue)
            cases[name, transpose_b] = case(name, w)
    oracles.agree(cases, TOLERANCE)


def test_operands_are_broadcast_against_all_leading_dimensions() -> None:
    shape = (2, 3, 4, 10)
    epilogue = oracles.residual_epilogue(Operand((2, 1, 4, 10), "float32"), shape)
    w = workload(24, 9, 10, out_shape=shape, epilogue=epilogue)
    oracles.agree({"rank 4": case("matmul", w)}, TOLERANCE)


def test_blocked_loops() -> None:
    w, cases = workload(23, 64, 100), {}
    for name, value in (("k_parts", 4), ("chunks", 3), ("pieces", 3)):
        cases[name] = case("matmul", w, **{name: value})
        cases[name, "4x1"] = case("matmul", w, **{name: value, "tile": 4, "blocks": 1})
    oracles.agree(cases, TOLERANCE)


def test_gemv() -> None:
    sizes = [(m, k, n) for m in (1, 2, 3, 4) for k, n in ((33, 5), (64, 129))]
    cases = {size: case("gemv", workload(*size)) for size in sizes}
    cases["shared among threads"] = case("gemv", workload(1, 512, 1000), pieces=3)
    oracles.agree(cases, TOLERANCE)


def test_packed_panels_hold_every_column() -> None:
    matrix = np.arange(3 * 20, dtype="float32").reshape(3, 20)
    panels = gemm.pack_panels(matrix, blocks=2, lanes=4)
    assert panels.shape == (3, 3, 2, 4)
    for p, first in enumerate([0, 8, 12]):
        np.testing.assert_array_equal(panels[p].reshape(3, 8), matrix[:, first : first + 8])
    np.testing.assert_array_equal(gemm.pack_panels(matrix[:, :3], 1, 4)[0, :, 0, 3], 0)


def test_refusals_name_the_property() -> None:
    w = workload(8, 8, 8)
    table = algorithms()
    assert "float16" in table["matmul"].supports(replace(w, dtype="float16"), HOST).reason
    assert "packed is False" in table["matmul"].supports(replace(w, packed=False), HOST).reason
    assert table["gemv"].supports(w, HOST).reason == "8 rows; at most 4"


def test_illegal_parameters_are_named() -> None:
    w, matmul = workload(8, 12, 8), algorithms()["matmul"]
    params = matmul.default(w, HOST)
    assert "matmul.k_parts = 5" in matmul.check(w, {**params, "k_parts": 5}, HOST)
    assert "no parameter 'unroll'" in matmul.check(w, {**params, "unroll": 2}, HOST)


@pytest.mark.parametrize(("target", "fma"), [(AVX512, "zmm"), (NEON, "fmla\tv")])
@pytest.mark.parametrize(("name", "m"), [("matmul", 64), ("gemv", 1)])
def test_other_targets_use_their_vectors(target: object, fma: str, name: str, m: int) -> None:
    text = assembly(name, workload(m, 64, 128), target)
    lines = [line for line in text.splitlines() if "vfmadd" in line or "fmla" in line]
    assert any(fma in line for line in lines)
    # Accumulators stay in registers: the loops store nothing but results.
    assert not any("(%rsp)" in line or "[sp" in line for line in lines)
