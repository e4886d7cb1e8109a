"""C3D, a network of 3-D convolutions on video (arXiv:1412.0767, figure 3), random weights.

The layers are C3D's; its last four convolutions have 384 channels for 512 and its fully connected
layers 768 units for 4096, which makes 93 MB of weights for 320.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from benchmarks.zoo.builder import GraphBuilder
from benchmarks.zoo.calibrate import calibrate
from benchmarks.zoo.random_weights import biases, conv_weight
from benchmarks.zoo.recipe import Inputs, Recipe, random_clip


@dataclass(frozen=True)
class Size:
    """The dimensions of a C3D.

    Attributes
    ----------
    frames : int
        2 ** (number of stages - 1): the pools leave one frame of them.
    image : int
        Height and width in pixels; with `frames` a multiple of 32.
    stages : tuple of tuple of int
        The channels of the convolutions before each pool.
    units, classes : int
        Outputs of the two hidden fully connected layers, and of the last.
    """

    frames: int = 16
    image: int = 112
    stages: tuple[tuple[int, ...], ...] = ((64,), (128,), (256, 256), (384, 384), (384, 384))
    units: int = 768
    classes: int = 487


def build(size: Size) -> onnx.ModelProto:
    """Make the model: input (1, 3, frames, image, image) to logits (1, classes)."""
    rng = np.random.default_rng(3)
    graph = GraphBuilder("c3d")
    x, channels, pixels = "input", 3, size.image
    for i, widths in enumerate(size.stages):
        for j, width in enumerate(widths):
            weight, bias = conv_weight(rng, width, channels, 3, 3, 3), biases(rng, width)
            x = graph.relu(graph.conv(x, f"conv{i + 1}.{j}", weight, bias=bias, pads=(1, 1)))
            channels = width
        # The first pool keeps all frames; the last pads, so that an odd row and column count.
        window, edge = [1 if i == 0 else 2, 2, 2], 1 if i == len(size.stages) - 1 else 0
        pads = [0, edge, edge] * 2
        x = graph.op("MaxPool", x, kernel_shape=window, strides=window, pads=pads)
        pixels = pixels // 2 + edge
    x, features = graph.op("Flatten", x, axis=1), channels * pixels**2
    for i in (6, 7):
        weight, bias = conv_weight(rng, size.units, features), biases(rng, size.units)
        x = graph.relu(graph.dense(x, f"fc{i}", weight, bias))
        features = size.units
    weight, bias = conv_weight(rng, size.classes, features), biases(rng, size.classes)
    x = graph.dense(x, "fc8", weight, bias)
    sample = clips(size, rng)
    return calibrate(graph.model(sample, x, (1, size.classes)), sample)


def clips(size: Size, rng: np.random.Generator) -> Inputs:
    """Draw a random film."""
    return {"input": random_clip(rng, size.frames, size.image)}


RECIPES = (
    Recipe(
        "c3d",
        "C3D video network (fewer channels at the end), seeded random weights",
        partial(build, Size()),
        partial(clips, Size()),
    ),
)
