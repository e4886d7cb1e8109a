"""Permutation of dimensions against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.shuffle import merge
from tvm_ext.schedules.workload import TransposeWorkload

V = HOST.lanes
CASES = [
    ((2, 3, 4, 25), (0, 2, 1, 3)),
    ((1, 2 * V + 1, 4 * V + 1), (0, 2, 1)),
    ((2, 9, 2 * V, V), (0, 2, 3, 1)),
    ((2, 12, V, 2 * V), (0, 2, 3, 1)),
    ((V - 1, V), (1, 0)),
    ((V, 2 * V), (1, 0)),
    ((2, 3, 40, 5, 6), (0, 2, 1, 3, 4)),
    ((3, 4), (0, 1)),
    ((1, 1), (1, 0)),
    ((6,), (0,)),
    ((10, 9, 11), (2, 1, 0)),
]


def test_matches_numpy() -> None:
    cases = []
    for shape, axes in CASES:
        for dtype in ("float32", "int8", "int64") if len(shape) < 4 else ("float32",):
            data = (50 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
            w = TransposeWorkload(shape, axes, dtype)
            params = {"parallel": len(cases) % 2 == 0}
            cases.append(Case("shuffle", w, data=[data], out_dtype=dtype, params=params))
    for case, got in zip(cases, run_all(cases), strict=True):
        want = case.data[0].transpose(case.workload.axes)
        np.testing.assert_array_equal(got, want, err_msg=str(case.workload))


@pytest.mark.parametrize(
    "shape,axes,want",
    (
        ((2, 3, 4, 5), (0, 2, 1, 3), ((2, 3, 4, 5), (0, 2, 1, 3))),
        ((1, 3, 4, 5, 6), (0, 2, 1, 3, 4), ((3, 4, 30), (1, 0, 2))),
        ((3, 4), (0, 1), ((12,), (0,))),
        ((1, 5, 1), (2, 1, 0), ((5,), (0,))),
        ((1, 1), (1, 0), ((1,), (0,))),
    ),
)
def test_merged_dimensions(shape: tuple[int, ...], axes: tuple[int, ...], want: object) -> None:
    assert merge(shape, axes) == want


def test_vector_registers_of_other_targets() -> None:
    w = TransposeWorkload((64, 48), (1, 0))
    wide = assembly("shuffle", w, AVX512)
    assert "vunpcklps" in wide and "%zmm" in wide
    assert "zip1" in assembly("shuffle", w, NEON)


def test_refusals() -> None:
    algorithm, w = algorithms()["shuffle"], TransposeWorkload((2, 3), (1, 0))
    assert "parallel = None" in algorithm.check(w, {"parallel": None}, HOST)
    wrong = TransposeWorkload((2, 3), (0, 0))
    assert "axes (0, 0)" in algorithm.supports(wrong, HOST).reason
