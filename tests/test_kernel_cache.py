"""Versions of a model compile only what is new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.naive_plan import naive_plan
from tests.schedules.kernels import HOST
from tests.transfer.tuning import network
from tvm_ext import kernel_cache, planner
from tvm_ext.grouped_model import grouped
from tvm_ext.kernel_cache import KernelCache
from tvm_ext.transfer.tune_whole import built, with_layers

MODEL = grouped(network(size=6, filters=4), HOST)
PLAN = planner.choose(MODEL.layers, HOST)


def test_what_is_known_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []
    compile_kernels = kernel_cache.compile_kernels

    def counted(kernels: Mapping[str, Any], target: Any) -> Any:
        compiled.append(len(kernels))
        return compile_kernels(kernels, target)

    monkeypatch.setattr(kernel_cache, "compile_kernels", counted)
    naive = naive_plan(MODEL, PLAN, HOST)
    convolution = next(entry.name for entry in PLAN if entry.estimate_us > 0)
    mixed = with_layers(PLAN, {convolution: naive[convolution]})
    cache = KernelCache(HOST)
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype("float32")
    expected = built(MODEL, PLAN, HOST)(x)
    for plan in (PLAN, naive, mixed, replace(PLAN)):
        exe = built(MODEL, plan, HOST, cache)
        np.testing.assert_allclose(exe(x), expected, rtol=1e-5, atol=1e-6)
        # By name, as a profile calls them.
        assert len(exe.profile(runs=1).rows) >= 3
    # The naive version's own two kernels, the product's and the two convolutions'; the mixed one
    # has only conversions of its own, and the last one nothing.
    assert compiled[0] >= 2 and compiled[1] == 2 and compiled[2] <= 2 and compiled[3] == 0
