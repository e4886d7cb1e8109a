"""Concatenation against numpy."""

from __future__ import annotations

from math import prod

import numpy as np

from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.workload import ConcatWorkload

V = HOST.lanes
PLAIN = [
    (1, (2, 3, 5), (2, 7, 5)),
    (1, (4, V - 1), (4, V), (4, V + 1)),
    (0, (5, 2), (1, 2)),
    (1, (1, 70, 40, 9), (1, 33, 40, 9)),
    (1, (3, 1), (3, 1)),
    (3, (1, 2, 2, 4 * V + 3), (1, 2, 2, 1)),
]
BLOCKED = [(1, (2, V, 5), (2, V - 1, 5)), (1, (2, 2 * V, 3, 3), (2, V, 3, 3), (2, V + 1, 3, 3))]


def test_matches_numpy() -> None:
    cases = []
    for layout, lists in (((0, 0), PLAIN), ((V, V), BLOCKED)):
        for axis, *shapes in lists:
            for dtype in ("float32",) if layout[0] else ("float32", "int8"):
                data = [np.arange(prod(s)).reshape(s).astype(dtype) - 9 * i for i, s in
                        enumerate(shapes)]  # fmt: skip
                w = ConcatWorkload(tuple(shapes), axis, dtype)
                for params in ({}, {"pieces": 4, "parallel": True}):
                    cases.append(
                        Case("concat", w, data=data, layout=layout, out_dtype=dtype, params=params)
                    )
    for case, got in zip(cases, run_all(cases), strict=True):
        want = np.concatenate(case.data, case.workload.axis)
        np.testing.assert_array_equal(got, want, err_msg=str(case.workload))


def test_blocked_only_when_channels_fill_the_blocks() -> None:
    algorithm = algorithms()["concat"]
    whole = ConcatWorkload(((1, V, 2), (1, 3, 2)), 1, "float32")
    assert (V, V) in algorithm.layouts(whole, HOST)
    for refused in (
        ConcatWorkload(((1, V + 1, 2), (1, 3, 2)), 1, "float32"),
        ConcatWorkload(((1, V, 2), (1, V, 2)), 2, "float32"),
        ConcatWorkload(((1, V, 2), (1, V, 2)), 1, "int64"),
    ):
        assert algorithm.layouts(refused, HOST) == ((0, 0),)


def test_vector_registers_of_other_targets() -> None:
    w = ConcatWorkload(((8, 48), (8, 32)), 1, "float32")
    # LLVM may move 512 bits as two halves where nothing is computed.
    wide = assembly("concat", w, AVX512)
    assert "%zmm" in wide or "%ymm" in wide
    assert "q0" in assembly("concat", w, NEON)


def test_refusals() -> None:
    algorithm = algorithms()["concat"]
    w = ConcatWorkload(((1, 8), (1, 8)), 1, "float32")
    assert "pieces = 3" in algorithm.check(w, {"pieces": 3, "parallel": False}, HOST)
    empty = ConcatWorkload(((1, 8), (1, 0)), 1, "float32")
    assert "input 1 of shape (1, 0)" in algorithm.supports(empty, HOST).reason
