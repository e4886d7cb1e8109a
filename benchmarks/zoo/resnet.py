"""ResNet-18 (He et al. 2015, arXiv:1512.03385, table 1), seeded random weights."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.zoo.builder import GraphBuilder
from benchmarks.zoo.calibrate import calibrate
from benchmarks.zoo.random_weights import batch_norm_parameters, conv_weight
from benchmarks.zoo.recipe import Recipe, random_image

_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
_BLOCKS = 2


def _build() -> onnx.ModelProto:
    rng = np.random.default_rng(18)
    graph = GraphBuilder("resnet18")

    def conv_bn(x: str, name: str, cin: int, cout: int, kernel: int, stride: int) -> str:
        half = kernel // 2
        weight = conv_weight(rng, cout, cin, kernel, kernel)
        x = graph.conv(x, f"{name}.conv", weight, stride=stride, pads=(half, half))
        return graph.batch_norm(x, f"{name}.bn", batch_norm_parameters(rng, cout))

    x = graph.relu(conv_bn("input", "stem", 3, 64, 7, 2))
    x = graph.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for i, (width, first_stride) in enumerate(_STAGES):
        for j in range(_BLOCKS):
            name = f"layer{i + 1}.{j}"
            stride = first_stride if j == 0 else 1
            y = graph.relu(conv_bn(x, f"{name}.1", channels, width, 3, stride))
            y = conv_bn(y, f"{name}.2", width, width, 3, 1)
            if stride != 1 or channels != width:
                x = conv_bn(x, f"{name}.shortcut", channels, width, 1, stride)
            x = graph.relu(graph.op("Add", y, x))
            channels = width
    bias = rng.normal(0.0, 0.1, 1000).astype(np.float32)
    x = graph.classifier(x, "fc", conv_weight(rng, 1000, channels), bias)
    sample = {"input": random_image(rng)}
    return calibrate(graph.model(sample, x, (1, 1000)), sample)


RECIPES = (
    Recipe(
        "resnet18",
        "ResNet-18, seeded random weights",
        _build,
        lambda rng: {"input": random_image(rng)},
    ),
)
