"""Multiply-adds counted by hand."""

import numpy as np

from benchmarks.macs import count_macs
from benchmarks.zoo.builder import GraphBuilder


def half(*shape):
    """Ones, every other one zero."""
    return (np.arange(np.prod(shape)) % 2).astype(np.float32).reshape(shape)


def test_convolutions_and_products():
    graph = GraphBuilder("g")
    x = graph.conv("input", "c", half(8, 3, 3, 3), stride=2, pads=(1, 1))
    # Depthwise, all weights there.
    x = graph.conv(x, "d", np.ones((8, 1, 3, 3), np.float32), pads=(1, 1), group=8)
    x = graph.classifier(x, "fc", half(10, 8), np.zeros(10, np.float32))
    model = graph.model({"input": np.zeros((1, 3, 12, 10), np.float32)}, x, (1, 10))
    conv, depthwise, dense = 8 * 27 * 30, 8 * 9 * 30, 80
    assert count_macs(model) == (conv + depthwise + dense, conv // 2 + depthwise + dense // 2)


def test_lstm_and_matmul():
    graph = GraphBuilder("g")
    weights = [graph.weight("w", half(1, 12, 5)), graph.weight("r", half(1, 12, 3))]
    x = graph.op("LSTM", "input", *weights, hidden_size=3)
    x = graph.op("MatMul", x, graph.weight("m", half(3, 2)))
    # A product of two values that are computed has no weights.
    x = graph.op("MatMul", graph.op("Transpose", x, perm=[0, 1, 3, 2]), x)
    model = graph.model({"input": np.zeros((7, 2, 5), np.float32)}, x, (7, 1, 2, 2))
    every = 7 * 2 * (12 * 5 + 12 * 3) + 7 * 2 * 6
    assert count_macs(model) == (every, every // 2)


def test_biases_and_other_operators_count_nothing():
    graph = GraphBuilder("g")
    x = graph.conv("input", "c", half(2, 2, 1, 1), bias=np.ones(2, np.float32))
    x = graph.op("Add", graph.relu(x), graph.weight("a", np.ones((2, 1, 1), np.float32)))
    model = graph.model({"input": np.zeros((1, 2, 4, 4), np.float32)}, x, (1, 2, 4, 4))
    assert count_macs(model) == (4 * 16, 2 * 16)
