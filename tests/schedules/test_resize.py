"""Enlarging by whole factors against numpy's repeat and interp."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run_all
from tvm_ext.schedules.resize import ResizeWorkload, linear_taps

V = HOST.lanes
SHAPES = (((2, V + 1, 5, 7), (2, 2)), ((1, 3, 4, 1), (3, 1)), ((1, 2 * V, 1, 6), (1, 4)))


def _interpolated(x: np.ndarray, axis: int, factor: int, half_pixel: bool) -> np.ndarray:
    at = np.arange(x.shape[axis] * factor)
    at = (at + 0.5) / factor - 0.5 if half_pixel else at / factor
    line = np.arange(x.shape[axis])
    return np.apply_along_axis(lambda row: np.interp(at, line, row), axis, x)


def _data(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("parallel", [False, True])
def test_nearest_repeats_elements(parallel: bool) -> None:
    cases = [
        Case("resize", ResizeWorkload("nearest", shape, factors), data=[_data(shape)],
             layout=(block, block), params={"parallel": parallel})
        for shape, factors in SHAPES
        for block in (0, V)
    ]  # fmt: skip
    for case, got in zip(cases, run_all(cases), strict=True):
        fy, fx = case.workload.factors
        want = case.data[0].repeat(fy, axis=2).repeat(fx, axis=3)
        np.testing.assert_array_equal(got, want, err_msg=str(case))


@pytest.mark.parametrize("half_pixel", [False, True])
def test_linear_interpolates(half_pixel: bool) -> None:
    cases = []
    for shape, factors in SHAPES:
        taps = [linear_taps(n, f, half_pixel) for n, f in zip(shape[2:], factors, strict=True)]
        for block in (0, V):
            w = ResizeWorkload("linear", shape, factors)
            cases.append(Case("resize", w, data=[_data(shape)], weights=[*taps[0], *taps[1]],
                              layout=(block, block), params={"parallel": block == 0}))  # fmt: skip
    for case, got in zip(cases, run_all(cases), strict=True):
        fy, fx = case.workload.factors
        want = _interpolated(case.data[0].astype("float64"), 2, fy, half_pixel)
        want = _interpolated(want, 3, fx, half_pixel)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=str(case))


@pytest.mark.parametrize("kind", ["nearest", "linear"])
def test_vector_registers_of_other_targets(kind: str) -> None:
    w = ResizeWorkload(kind, (1, 64, 8, 8), (2, 2))
    assert "%zmm" in assembly("resize", w, AVX512, (16, 16))
    text = assembly("resize", w, NEON, (4, 4))
    assert ("\tq" in text) if kind == "nearest" else (".4s" in text)
