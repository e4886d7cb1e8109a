"""`int8_gemm` against NumPy in int64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules.kernels import HOST, NEON, assembly, same_on_any_threads
from tests.schedules.quantized_layers import (
    V,
    assert_same_bits,
    case,
    expected,
    inner_loop,
    matmul,
    run_on,
)
from tvm_ext.schedules.base import algorithms
from tvm_ext.target import resolve

NAME = "int8_gemm"
PLAIN = (0, 0)
EMERALD = resolve("llvm -mcpu=emeraldrapids")


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_matches_numpy(dtype: str) -> None:
    shapes = [(1, 64, 5 * V), (1, 37, 10), (3, 18, V - 1), (17, 40, 3 * V + 1), (33, 5, V + 1),
              (2, 3, 1), (5, 128, 2 * V)]  # fmt: skip
    assert_same_bits([case(NAME, matmul(*shape, dtype=dtype), PLAIN) for shape in shapes])


def test_one_scale_for_all_columns() -> None:
    assert_same_bits([case(NAME, matmul(4, 32, 20), PLAIN, per_channel=False)])


def test_parameters_change_the_loops_only() -> None:
    w = matmul(23, 36, 3 * V)
    params = [
        {"tile": 1, "blocks": 1, "chunk": 23, "pieces": 3},
        {"tile": 4, "blocks": 2, "chunk": 5, "pieces": 2},
    ]
    assert_same_bits([case(NAME, w, PLAIN, params=given) for given in params])
    same_on_any_threads([case(NAME, w, PLAIN, params=params[1])])


def test_vectors_of_columns_overlap_at_the_end() -> None:
    w, algorithm = matmul(1, 8, V + 3), algorithms()[NAME]
    given = case(NAME, w, PLAIN)
    panels, _, scales = algorithm.pack(w, algorithm.default(w, HOST), HOST, given.weights)
    assert panels.shape[-1] == V
    np.testing.assert_array_equal(scales[1], given.weights[2][3:])


@pytest.mark.parametrize("cpu", ["core-avx2", "x86-64-v2"])
@pytest.mark.parametrize("depth", [32, 19])
def test_widened_products_match_numpy(cpu: str, depth: int) -> None:
    target = resolve(f"llvm -mcpu={cpu}")
    if not target.is_host:
        pytest.skip(f"this machine can't run {cpu}")
    given = case(NAME, matmul(5, depth, 13, "int8"), PLAIN)
    np.testing.assert_array_equal(run_on(target, given), expected(given))


def test_vnni_code() -> None:
    products, others = inner_loop(assembly(NAME, matmul(28, 256, 64), EMERALD), "vpdpbusd")
    assert products > 0.5 * (products + sum(others.values()))


def test_neon_compiles() -> None:
    assert "mla" in assembly(NAME, matmul(4, 32, 16), NEON)
