"""Densities for a speed-up, against the cost of each algorithm that the planner may take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm import relax

from tvm_ext.anchors.products import conv
from tvm_ext.layer_speedup import density_for
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.pruning import BlockPrune, PatternPrune, Prunable, Scheme, prunables
from tvm_ext.schedules import algorithms
from tvm_ext.sparsity import summarize
from tvm_ext.target import resolve

# Numbers that no measurement changes.
NOMINAL = replace(resolve("native"), is_host=False)
BLOCKS = BlockPrune(0.5, block=(8, 10_000))


def _layer(weights: np.ndarray, size: int = 28) -> Prunable:
    dtype = str(weights.dtype)
    x = relax.Var("x", relax.TensorType([1, weights.shape[1], size, size], dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            call = relax.op.nn.conv2d(x, relax.const(weights, dtype), padding=1)
            out = builder.emit_output(call)
        builder.emit_func_output(out)
    (layer,) = prunables(builder.get())
    return layer


@pytest.fixture(scope="module")
def layer() -> Prunable:
    return _layer(np.random.default_rng(0).normal(size=(64, 64, 3, 3)).astype("float32"))


def _speedup(layer: Prunable, scheme: Scheme, density: float) -> float:
    """Least seconds of all algorithms for the dense weights, over those for the pruned ones."""
    pruned = layer.weights * scheme.at_density(density, layer.weights.shape).mask(layer.weights)

    def least(weights: np.ndarray) -> float:
        call = relax.Call(
            layer.call.op, [layer.call.args[0], df.constant(weights)], layer.call.attrs
        )
        base = conv(call, df.shape_of(layer.var)).base
        workload = replace(base, sparsity=summarize(weights))
        return min(
            a.cost(workload, a.default(workload, NOMINAL), NOMINAL)
            for a in algorithms(workload).values()
            if a.supports(workload, NOMINAL)
        )

    return least(layer.weights) / least(pruned)


@pytest.mark.parametrize("speedup", [1.2, 2.0])
def test_the_density_is_the_largest_that_is_fast_enough(layer: Prunable, speedup: float) -> None:
    density = density_for(layer, BLOCKS, speedup, NOMINAL)
    assert isinstance(density, float)
    assert _speedup(layer, BLOCKS, density) >= speedup
    assert _speedup(layer, BLOCKS, min(1.0, 1.03 * density)) < 1.01 * speedup


def test_a_scheme_keeps_no_more_than_it_can(layer: Prunable) -> None:
    scheme = PatternPrune(entries=1, lanes=16)
    assert density_for(layer, scheme, 1.01, NOMINAL) == pytest.approx(1 / 9)


def test_the_reason_says_what_is_in_reach(layer: Prunable) -> None:
    reason = density_for(layer, BLOCKS, 1000.0, NOMINAL)
    assert isinstance(reason, str)
    best = _speedup(layer, BLOCKS, 0.01)
    assert reason == f"speedup=1000.0 is out of reach: {best:.2f} at density 0.010"


def test_a_layer_that_no_kernel_takes_has_none() -> None:
    reason = density_for(_layer(np.ones((4, 4, 3, 3), "float16")), BLOCKS, 2.0, NOMINAL)
    assert reason == "dtype float16; only float32 has a specialised kernel"
