"""Parts of one axis against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules.kernels import AVX512, HOST, Case, parameters, run_all
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.slice import SliceWorkload

V = HOST.lanes
# Shape, axis, bounds, and whether the part is one of whole blocks.
PARTS = (
    ((2, 4 * V, 3, 5), 1, V, 3 * V, True),
    ((1, 3 * V + 2, 4, 4), 1, V, 3 * V + 2, True),
    ((2, 2 * V, 3, 5), 1, 1, V, False),
    ((2, V + 1, 6, 5), 2, 1, 4, True),
    ((1, V, 40, 50), 3, 7, 50, True),
    ((7, 33), 0, 2, 6, False),
    ((7, 33), 1, 5, 28, False),
    ((300,), 0, 17, 290, False),
)


def _data(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (50 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("pieces", [1, 4])
def test_matches_numpy(pieces: int) -> None:
    cases = []
    for shape, axis, begin, end, blocked in PARTS:
        for dtype in ("float32", "int8", "int64"):
            w = SliceWorkload(shape, axis, begin, end, dtype)
            blocks = (0, V) if blocked and dtype == "float32" else (0,)
            cases += [
                Case("slice", w, data=[_data(shape, dtype)], out_dtype=dtype, layout=(b, b),
                     params={"pieces": pieces, "parallel": pieces > 1})
                for b in blocks
            ]  # fmt: skip
    for case, got in zip(cases, run_all(cases), strict=True):
        w = case.workload
        want = case.data[0].take(range(w.begin, w.end), w.axis)
        np.testing.assert_array_equal(got, want, err_msg=str(case))


@pytest.mark.parametrize("part", PARTS)
def test_blocked_layouts_hold_whole_blocks(part: tuple) -> None:
    *bounds, blocked = part
    layouts = algorithms()["slice"].layouts(SliceWorkload(*bounds), HOST)
    assert ((V, V) in layouts) == blocked


def test_other_targets() -> None:
    w = SliceWorkload((1, 64, 8, 8), 1, 16, 48)
    assert ((16, 16)) in algorithms()["slice"].layouts(w, AVX512)
    assert parameters("slice", w, AVX512, {}) == {"pieces": 1, "parallel": False}


def test_a_part_without_elements_is_refused() -> None:
    assert not algorithms()["slice"].supports(SliceWorkload((4, 4), 0, 2, 2), HOST)
