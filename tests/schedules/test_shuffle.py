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


BLOCKED = [
    # The source, its channels cut in parts, the permutation.
    ((1, 6 * V, 5, 7), (1, 3, 2 * V, 5, 7), (0, 1, 3, 4, 2)),
    ((2, 15, 4, 4), (2, 3, 5, 4, 4), (0, 1, 3, 4, 2)),
    ((2, V + 3, 6), (2, V + 3, 6), (0, 2, 1)),
    ((1, 4 * V, 2, 3, 2), (1, 2, 2, V, 2, 3, 2), (0, 2, 5, 4, 6, 1, 3)),
]


def test_maps_of_blocks_are_read_as_they_are() -> None:
    cases, wants = [], []
    for source, shape, axes in BLOCKED:
        data = np.random.default_rng(1).standard_normal(source).astype("float32")
        w = TransposeWorkload(shape, axes, source=source)
        assert algorithms()["shuffle"].layouts(w, HOST) == ((0, 0), (V, 0))
        for layout in ((0, 0), (V, 0)):
            cases.append(Case("shuffle", w, data=[data], layout=layout, missing=np.nan))
            wants.append(data.reshape(shape).transpose(axes))
    for case, got, want in zip(cases, run_all(cases), wants, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=f"{case.workload} {case.layout}")


@pytest.mark.parametrize(
    "source,shape,axes,dtype",
    (
        ((1, 32, 4, 4), (1, 2, 16, 4, 4), (0, 2, 1, 3, 4), "float32"),  # positions innermost
        ((1, 32, 4, 4), (1, 2, 16, 4, 4), (0, 2, 3, 4, 1), "float32"),  # channels far apart
        ((1, 32, 4, 4), (1, 32, 2, 8), (0, 2, 3, 1), "float32"),  # positions cut
        ((2, 32, 4), (64, 4), (1, 0), "float32"),  # samples and channels as one
        ((1, 32, 4, 4), (1, 2, 16, 4, 4), (0, 1, 3, 4, 2), "int8"),
        ((), (1, 32, 4, 4), (0, 2, 3, 1), "float32"),
    ),
)
def test_other_permutations_read_planes(
    source: tuple[int, ...], shape: tuple[int, ...], axes: tuple[int, ...], dtype: str
) -> None:
    w = TransposeWorkload(shape, axes, dtype, source)
    assert algorithms()["shuffle"].layouts(w, HOST) == ((0, 0),)


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
