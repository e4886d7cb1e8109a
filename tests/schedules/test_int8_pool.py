"""`int8_pool` against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.schedules.kernels import NEON, Case, assembly, run_all, same_on_any_threads
from tests.schedules.quantized_layers import V, integers, pool, requantized
from tvm_ext.schedules.quantized_workload import QuantizedPoolWorkload
from tvm_ext.target import resolve

NAME = "int8_pool"


def case(w: QuantizedPoolWorkload, **fields: Any) -> Case:
    """A random call."""
    # Not every value, so that the largest one of a window isn't always the type's.
    data = integers(w.shape, w.dtype) // 2
    return Case(NAME, w, [data.astype(w.dtype)], layout=(V, V), out_dtype=w.dtype, **fields)


def expected(given: Case) -> np.ndarray:
    """Max pools over padding with the lowest value; averages in int64."""
    w, x = given.workload, given.data[0].astype("int64")
    if w.kind != "max":
        total = (x - w.x_zero).sum((2, 3), keepdims=True)
        return requantized(total, w.scale, w.result, w.dtype)
    (top, left), (bottom, right) = w.pad_before, w.pad_after
    padded = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)], constant_values=-999)
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.kernel, (2, 3))
    return windows[:, :, :: w.strides[0], :: w.strides[1]].max((-1, -2)).astype(w.dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_matches_numpy(dtype: str) -> None:
    workloads = [
        pool("max", (1, V, 9, 8), 3, 2, 1, dtype),
        pool("max", (2, 2 * V + 1, 7, 7), 2, 2, 0, dtype),
        pool("max", (1, 5, 6, 11), 5, 1, 4, dtype),
        pool("max", (1, V - 1, 4, 4), 1, 3, 0, dtype),
        pool("global_average", (1, 3 * V, 7, 7), 0, dtype=dtype),
        pool("global_average", (2, V + 3, 5, 3), 0, dtype=dtype),
    ]
    cases = [case(w) for w in workloads]
    for given, found in zip(cases, run_all(cases), strict=True):
        np.testing.assert_array_equal(found, expected(given), err_msg=str(given.workload))


def test_threads_make_the_same_bits() -> None:
    w = pool("max", (1, 2 * V, 9, 8), 3, 2, 1)
    same_on_any_threads([case(w, params={"parallel": True})])


def test_code_is_vectors() -> None:
    emerald = resolve("llvm -mcpu=emeraldrapids")
    text = assembly(NAME, pool("max", (1, 32, 16, 16), 3, 2, 1), emerald, (16, 16))
    assert "vpmaxub" in text
    assert "umax" in assembly(NAME, pool("max", (1, 8, 6, 6), 3, 2, 1), NEON, (4, 4))
