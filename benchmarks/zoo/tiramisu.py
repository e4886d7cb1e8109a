"""The networks on which Tiramisu was measured sparse (Baghdadi et al. 2020, section 5).

An LSTM of four layers, and the tenth layers of VGG and of ResNet-20 with the layer behind each.
"""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.zoo.builder import GraphBuilder
from benchmarks.zoo.calibrate import calibrate
from benchmarks.zoo.random_weights import batch_norm_parameters, biases, conv_weight
from benchmarks.zoo.recipe import Inputs, Recipe

_LAYERS, _STEPS, _HIDDEN = 4, 100, 1024
_VGG, _RESNET = (1, 512, 28, 28), (1, 32, 16, 16)


def _seq2seq() -> onnx.ModelProto:
    rng = np.random.default_rng(4)
    graph = GraphBuilder("seq2seq_lstm")
    x = "input"
    for i in range(_LAYERS):
        name = f"lstm{i}"
        w, r = (conv_weight(rng, 4 * _HIDDEN, _HIDDEN)[np.newaxis] for _ in range(2))
        b = biases(rng, 8 * _HIDDEN)[np.newaxis]
        x = graph.op(
            "LSTM",
            x,
            graph.weight(f"{name}.W", w),
            graph.weight(f"{name}.R", r),
            graph.weight(f"{name}.B", b),
            name=name,
            hidden_size=_HIDDEN,
        )
        # (steps, directions, batch, hidden) without the directions.
        x = graph.op("Squeeze", x, graph.integers("directions", [1]))
    return graph.model(_sequence(rng), x, (_STEPS, 1, _HIDDEN))


def _vgg_block() -> onnx.ModelProto:
    rng = np.random.default_rng(10)
    graph = GraphBuilder("vgg_block")
    x, channels = "input", _VGG[1]
    for i in (10, 11):
        weight = conv_weight(rng, channels, channels, 3, 3)
        x = graph.relu(graph.conv(x, f"conv{i}", weight, bias=biases(rng, channels), pads=(1, 1)))
    x = graph.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    sample = _map(rng, _VGG)
    return calibrate(graph.model(sample, x, (1, channels, 14, 14)), sample, logits_std=1.0)


def _resnet_block() -> onnx.ModelProto:
    rng = np.random.default_rng(20)
    graph = GraphBuilder("resnet_block")
    x, channels = "input", _RESNET[1]
    for i in (10, 11):
        weight = conv_weight(rng, channels, channels, 3, 3)
        x = graph.conv(x, f"conv{i}", weight, pads=(1, 1))
        x = graph.batch_norm(x, f"bn{i}", batch_norm_parameters(rng, channels))
        x = graph.relu(x if i == 10 else graph.op("Add", x, "input"))
    sample = _map(rng, _RESNET)
    return calibrate(graph.model(sample, x, _RESNET), sample, logits_std=1.0)


def _sequence(rng: np.random.Generator) -> Inputs:
    return {"input": rng.standard_normal((_STEPS, 1, _HIDDEN)).astype(np.float32)}


def _map(rng: np.random.Generator, shape: tuple[int, ...]) -> Inputs:
    """A feature map behind a ReLU."""
    return {"input": np.maximum(rng.standard_normal(shape), 0).astype(np.float32)}


RECIPES = (
    Recipe(
        "seq2seq_lstm",
        "4 LSTM layers of 1024 units on 100 steps, seeded random weights",
        _seq2seq,
        _sequence,
    ),
    Recipe(
        "vgg_block",
        "2 convolutions of 512 channels on 28x28 and a pool, seeded random weights",
        _vgg_block,
        lambda rng: _map(rng, _VGG),
    ),
    Recipe(
        "resnet_block",
        "a residual block of 32 channels on 16x16, seeded random weights",
        _resnet_block,
        lambda rng: _map(rng, _RESNET),
    ),
)
