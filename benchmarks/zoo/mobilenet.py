"""MobileNet v1 and v2 (arXiv:1704.04861, table 1; arXiv:1801.04381, table 2), random weights."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.zoo.builder import GraphBuilder
from benchmarks.zoo.calibrate import calibrate
from benchmarks.zoo.random_weights import batch_norm_parameters, conv_weight
from benchmarks.zoo.recipe import Recipe, random_image

# v1: output channels and stride of each depthwise separable block.
_V1_BLOCKS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *[(512, 1)] * 5,
    (1024, 2),
    (1024, 1),
)

# v2: expansion, output channels, repeats and stride of each group of inverted residuals.
_V2_GROUPS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_V2_HEAD = 1280


class _Network:
    """A graph and the random weights that go into it."""

    def __init__(self, name: str, seed: int) -> None:
        self.graph = GraphBuilder(name)
        self.rng = np.random.default_rng(seed)

    def conv_bn(
        self, x: str, name: str, cin: int, cout: int, kernel: int = 1, stride: int = 1
    ) -> str:
        half = kernel // 2
        weight = conv_weight(self.rng, cout, cin, kernel, kernel)
        x = self.graph.conv(x, f"{name}.conv", weight, stride=stride, pads=(half, half))
        return self.graph.batch_norm(x, f"{name}.bn", batch_norm_parameters(self.rng, cout))

    def depthwise_bn_relu6(self, x: str, name: str, channels: int, stride: int) -> str:
        weight = conv_weight(self.rng, channels, 1, 3, 3)
        x = self.graph.conv(x, f"{name}.conv", weight, stride=stride, pads=(1, 1), group=channels)
        x = self.graph.batch_norm(x, f"{name}.bn", batch_norm_parameters(self.rng, channels))
        return self.graph.relu6(x)

    def finish(self, x: str, channels: int) -> onnx.ModelProto:
        bias = self.rng.normal(0.0, 0.1, 1000).astype(np.float32)
        weight = conv_weight(self.rng, 1000, channels)
        x = self.graph.classifier(x, "classifier", weight, bias)
        sample = {"input": random_image(self.rng)}
        return calibrate(self.graph.model(sample, x, (1, 1000)), sample)


def _build_v1() -> onnx.ModelProto:
    net = _Network("mobilenet_v1", 1)
    channels = 32
    x = net.graph.relu6(net.conv_bn("input", "stem", 3, channels, 3, 2))
    for i, (width, stride) in enumerate(_V1_BLOCKS):
        x = net.depthwise_bn_relu6(x, f"block{i}.depthwise", channels, stride)
        x = net.graph.relu6(net.conv_bn(x, f"block{i}.pointwise", channels, width))
        channels = width
    return net.finish(x, channels)


def _build_v2() -> onnx.ModelProto:
    net = _Network("mobilenet_v2", 2)
    channels = 32
    x = net.graph.relu6(net.conv_bn("input", "stem", 3, channels, 3, 2))
    for i, (expansion, width, repeats, first_stride) in enumerate(_V2_GROUPS):
        for j in range(repeats):
            name = f"group{i}.{j}"
            stride = first_stride if j == 0 else 1
            hidden = channels * expansion
            y = x
            if expansion != 1:
                y = net.graph.relu6(net.conv_bn(y, f"{name}.expand", channels, hidden))
            y = net.depthwise_bn_relu6(y, f"{name}.depthwise", hidden, stride)
            y = net.conv_bn(y, f"{name}.project", hidden, width)
            x = net.graph.op("Add", x, y) if stride == 1 and channels == width else y
            channels = width
    x = net.graph.relu6(net.conv_bn(x, "head", channels, _V2_HEAD))
    return net.finish(x, _V2_HEAD)


RECIPES = tuple(
    Recipe(
        name,
        f"{title} (width 1.0), seeded random weights",
        build,
        lambda rng: {"input": random_image(rng)},
    )
    for name, title, build in (
        ("mobilenet_v1", "MobileNet v1", _build_v1),
        ("mobilenet_v2", "MobileNet v2", _build_v2),
    )
)
