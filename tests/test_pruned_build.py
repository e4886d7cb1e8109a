"""Models with zeros in their weights: what is planned, and that they compute right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm import relax

import tvm_ext
from tests.passes.relax_models import array, const, module
from tests.schedules import oracles
from tests.schedules.oracles import conv_workload
from tests.schedules.sparse_weights import sparse_weights
from tvm_ext.layers import layers
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.planner import choose
from tvm_ext.target import resolve

SIZE, CHANNELS = 28, 64


def _model(weights):
    """Convolutions, each with a bias and a ReLU; the last of several adds the first one's result.

    Returns the module, its input, and what it computes.
    """
    shape = (1, CHANNELS, SIZE, SIZE)
    biases = [array(i, 1, CHANNELS, 1, 1) for i in range(len(weights))]
    adds = max(1, len(weights) - 1)

    def body(emit, x):
        values = [x]
        for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
            y = emit(relax.op.nn.conv2d(values[-1], const(w), padding=1))
            y = emit(relax.op.add(y, const(b)))
            if i == adds:
                y = emit(relax.op.add(y, values[1]))
            values.append(emit(relax.op.nn.relu(y)))
        return values[-1]

    w = conv_workload(CHANNELS, (SIZE, SIZE), CHANNELS, 3, 1, 1)
    data = oracles.random(shape, 5)
    values = [data]
    for i, (weight, b) in enumerate(zip(weights, biases, strict=True)):
        y = oracles.conv(w, values[-1], weight) + b.astype("float64")
        values.append(np.maximum(y + values[1] if i == adds else y, 0))
    return module({"x": shape}, body), data, values[-1]


def _plan(weights, target="native"):
    mod, _, _ = _model(weights)
    return choose(layers(graph_pipeline()(mod)), resolve(target))


def _weights(density, rows, count=3):
    return [
        sparse_weights((CHANNELS, CHANNELS, 3, 3), density, rows, seed=10 * i) for i in range(count)
    ]


def test_a_pruned_model_computes_what_its_weights_say():
    mod, data, expected = _model(_weights(0.1, 16))
    exe = tvm_ext.build(mod)
    assert {layer.storage for layer in exe.plan} == {"block"}
    np.testing.assert_allclose(
        np.asarray(exe(data)), expected, rtol=0, atol=1e-4 * np.abs(expected).max()
    )


@pytest.mark.parametrize("target", ["native", "core-avx2", "llvm -mcpu=skylake-avx512"])
def test_storage_follows_how_the_zeros_lie(target):
    assert {layer.storage for layer in _plan(_weights(0.1, 16), target)} == {"block"}
    assert {layer.storage for layer in _plan(_weights(0.03, 1), target)} == {"csr"}
    assert {layer.storage for layer in _plan(_weights(0.9, 1), target)} == {"dense"}


def test_the_plan_says_why_a_sparse_algorithm_lost():
    reasons = _plan(_weights(0.9, 1)).layers[0].rejected
    assert "; breaks even at density 0." in reasons["csr"]
    assert reasons["csr"].endswith(", has 0.90")
    dense = _plan([oracles.random((CHANNELS, CHANNELS, 3, 3), i) for i in range(2)])
    assert dense.layers[0].rejected["csr"] == "hardly any weight is zero"


def test_work_is_counted_without_the_zeros():
    (pruned,) = _plan(_weights(0.1, 16, count=1))
    (dense,) = _plan([oracles.random((CHANNELS, CHANNELS, 3, 3), 1)])
    assert pruned.gflop / dense.gflop == pytest.approx(0.1, abs=0.02)


def test_weights_take_the_memory_of_what_is_not_zero():
    sizes = {}
    for density in (0.05, 0.2):
        exe = tvm_ext.build(_model(_weights(density, 16))[0])
        sizes[density] = exe.program.constant_bytes
    weights = 3 * 4 * CHANNELS * CHANNELS * 9
    # A column of a panel of eight takes an index as well; biases and pointers are 5 KB.
    for density, size in sizes.items():
        assert size < 1.2 * density * weights * 9 / 8 + 5000


def test_layers_share_a_kernel_whatever_their_zeros():
    exe = tvm_ext.build(_model([*_weights(0.1, 16, 2), *_weights(0.12, 16, 1)])[0])
    kernels = [call.kernel for call in exe.program.calls]
    first, second, _ = (name for name in kernels if not name.startswith("layout_transform"))
    assert first == second


def test_workloads_differ_by_their_counts_only():
    first, second = (
        layers(graph_pipeline()(_model(_weights(d, 16, 1))[0]))[0].workload for d in (0.1, 0.2)
    )
    assert first != second
    assert replace(first, sparsity=None) == replace(second, sparsity=None)
