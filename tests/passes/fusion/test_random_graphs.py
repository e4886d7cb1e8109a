"""Random graphs: what the fused kernels compute is what NumPy computes for the graph."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import tvm
from hypothesis import HealthCheck, given, settings

import tvm_ext
from tests.passes.fusion.graphs import graphs
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_form import is_light, kernel_form

# Compiling takes half a second a graph.
_COMPILED = int(os.environ.get("TVM_EXT_RANDOM_GRAPHS", "25"))
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def _close(actual: Any, expected: list[np.ndarray]) -> None:
    found = actual if isinstance(actual, list) else [actual]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        scale = max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(a / scale, b / scale, atol=2e-5)


@settings(max_examples=_COMPILED, deadline=None, suppress_health_check=_SLOW)
@given(graphs())
def test_compiled_graphs_agree_with_numpy(
    drawn: tuple[tvm.IRModule, dict[str, np.ndarray], list[np.ndarray]],
) -> None:
    mod, inputs, expected = drawn
    _close(tvm_ext.build(mod)(inputs), expected)


@settings(max_examples=500, deadline=None, suppress_health_check=_SLOW)
@given(graphs(most=24))
def test_every_operator_is_in_one_group_and_groups_in_order(
    drawn: tuple[tvm.IRModule, dict[str, np.ndarray], list[np.ndarray]],
) -> None:
    mod, _, _ = drawn
    fused = UniversalFusion()(mod)
    bound = set(fused["main"].params)
    for var, expr in df.bindings(fused["main"]):
        assert bound.issuperset(df.free_vars(expr))
        bound.add(var)
    inside = [
        df.op_name(expr)
        for _, call in df.bindings(fused["main"])
        if isinstance(call, tvm.relax.Call)
        for _, expr in df.bindings(fused[call.op])
        if df.op_name(expr)
    ]
    before = [df.op_name(expr) for _, expr in df.bindings(mod["main"]) if df.op_name(expr)]
    assert sorted(inside) == sorted(before)
    for _, call in df.bindings(fused["main"]):
        if isinstance(call, tvm.relax.Call):
            group = [(v, e) for v, e in df.bindings(fused[call.op]) if df.op_name(e)]
            heavy = [e for _, e in group if not is_light(e)]
            # A pool behind its convolution, or a chain that one kernel goes through tile by tile.
            assert len(heavy) <= 1 or kernel_form(group)
