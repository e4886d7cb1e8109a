"""`int8_depthwise` against NumPy in int64."""

from __future__ import annotations

from typing import Any

import pytest

from tests.schedules.kernels import HOST, NEON, assembly, same_on_any_threads
from tests.schedules.quantized_layers import V, assert_same_bits, case, conv
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.quantized_workload import QuantizedConvWorkload
from tvm_ext.target import resolve

NAME = "int8_depthwise"


def depthwise(
    channels: int, spatial: tuple[int, int], *args: int, **options: Any
) -> QuantizedConvWorkload:
    """One filter a channel."""
    return conv(channels, spatial, channels, *args, groups=channels, **options)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_matches_numpy(dtype: str) -> None:
    workloads = [
        depthwise(V, (7, 9), 3, 1, 1, dtype=dtype),
        depthwise(2 * V + 5, (9, 8), 3, 2, 1, dtype=dtype),
        depthwise(V - 1, (11, 12), 5, 1, 4, 2, dtype=dtype),
        depthwise(V + 1, (6, 5), 3, 1, 0, batch=2, dtype=dtype),
        depthwise(4, (2, 2), 7, 1, 3, dtype=dtype),
        depthwise(V, (4, 20), 1, dtype=dtype),
    ]
    assert_same_bits([case(NAME, w) for w in workloads])


def test_parameters_change_the_loops_only() -> None:
    w = depthwise(2 * V, (8, 19), 3, 1, 1)
    cases = [case(NAME, w, params={"tile": t, "parallel": p}) for t, p in [(1, False), (7, True)]]
    assert_same_bits(cases)
    same_on_any_threads(cases[1:])


def test_refusals() -> None:
    algorithm = algorithms()[NAME]
    reason = algorithm.supports(conv(8, (4, 4), 4, 3), HOST).reason
    assert reason == "8 -> 4 channels in 1 groups; only as many groups as input and output channels"
    reason = algorithm.supports(depthwise(2, (40, 40), 23), HOST).reason
    assert reason == "529 taps; at most 512"


def test_code_is_vectors() -> None:
    emerald = resolve("llvm -mcpu=emeraldrapids")
    text = assembly(NAME, depthwise(32, (14, 14), 3, 1, 1), emerald, (16, 16))
    products = [line for line in text.splitlines() if "vfmadd" in line]
    assert products
    assert all("%zmm" in line for line in products)
    assert "fmla" in assembly(NAME, depthwise(8, (6, 6), 3, 1, 1), NEON, (4, 4))
