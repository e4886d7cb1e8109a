"""Layout conversion against numpy, there and back."""

from __future__ import annotations

import numpy as np

from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.layout_transform import LayoutWorkload

V = HOST.lanes
SHAPES = [
    (2, 2 * V, 5, 7),
    (1, V + 3, 3, 3),
    (1, 3, V),
    (1, 3, V - 1),
    (1, V - 1, V + 1),
    (1, 3 * V, 2, 2),
    (2, 5, 3, 3, 3),
]


def test_moves_every_element() -> None:
    """Blocked outputs are compared through the harness, which also reads the missing lanes."""
    cases = []
    for shape in SHAPES:
        for dtype in ("float32",) if len(shape) > 3 else ("float32", "int32", "float16", "int64"):
            data = (50 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
            for layout in ((V, 0), (0, V)):
                w = LayoutWorkload(shape, *layout, dtype)
                cases.append(
                    Case("layout_transform", w, data=[data], layout=layout, out_dtype=dtype)
                )
    for case, got in zip(cases, run_all(cases), strict=True):
        np.testing.assert_array_equal(got, case.data[0], err_msg=str(case.workload))


def test_vector_registers_of_other_targets() -> None:
    wide = assembly("layout_transform", LayoutWorkload((1, 64, 56, 56), 0, 16), AVX512, (0, 16))
    assert "vunpcklps" in wide and "%zmm" in wide
    narrow = assembly("layout_transform", LayoutWorkload((1, 64, 56, 56), 4, 0), NEON, (4, 0))
    assert "zip1" in narrow and "zip2" in narrow


def test_refusals() -> None:
    algorithm, w = algorithms()["layout_transform"], LayoutWorkload((1, 8, 4), 0, 8)
    assert "parallel = 2" in algorithm.check(w, {"parallel": 2}, HOST)
    both = LayoutWorkload((1, 8, 4), 8, 8)
    assert "blocks 8 -> 8" in algorithm.supports(both, HOST).reason
