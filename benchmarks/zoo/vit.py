"""ViT-B/16, a vision transformer (arXiv:2010.11929, table 1), seeded random weights.

12 layers, hidden size 768, 12 heads, intermediate size 3072, images of 224 pixels in patches of 16.
The graph is written as PyTorch's exporter writes the model of the timm library: query, key and
value from one MatMul, reshaped, transposed and split on a leading axis, and GELU operator by
operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from benchmarks.zoo.builder import GraphBuilder
from benchmarks.zoo.random_weights import (
    ATTENTION_GAIN,
    biases,
    branch_gain,
    conv_weight,
    layer_norm_scales,
    linear_weight,
)
from benchmarks.zoo.recipe import Inputs, Recipe, random_image

_EPSILON, _LOGITS_STD = 1e-6, 2.5


@dataclass(frozen=True)
class Size:
    """The dimensions of a ViT; the defaults are those of ViT-B/16.

    Attributes
    ----------
    layers, hidden, heads : int
        `hidden` is a multiple of `heads`.
    image, patch : int
        Pixels; `image` is a multiple of 32 and of `patch`.
    classes : int
    """

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    image: int = 224
    patch: int = 16
    classes: int = 1000

    @property
    def tokens(self) -> int:
        """One for each patch, and the class token."""
        return (self.image // self.patch) ** 2 + 1


def build(size: Size) -> onnx.ModelProto:
    """Make the model: input (1, 3, image, image) to logits (1, classes)."""
    encoder = _Encoder(size)
    graph, rng = encoder.graph, encoder.rng
    x = encoder.embeddings("input")
    for i in range(size.layers):
        x = encoder.layer(x, f"blocks.{i}")
    x = encoder.layer_norm(x, "norm")
    x = graph.op("Gather", x, graph.weight("class_index", np.array(0, np.int64)), axis=1)
    weight = linear_weight(rng, size.hidden, size.classes, _LOGITS_STD).T
    x = graph.dense(x, "head", weight, biases(rng, size.classes))
    return graph.model(images(size, rng), x, (1, size.classes))


def images(size: Size, rng: np.random.Generator) -> Inputs:
    """Draw a random image."""
    return {"input": random_image(rng, size.image)}


class _Encoder:
    """A graph, its dimensions and the random weights that go into it."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.graph = GraphBuilder(f"vit_{size.patch}")
        self.rng = np.random.default_rng(2020)

    def embeddings(self, x: str) -> str:
        """Project the patches, put the class token before them and add the positions."""
        graph, rng, size = self.graph, self.rng, self.size
        weight = conv_weight(rng, size.hidden, 3, size.patch, size.patch)
        bias = biases(rng, size.hidden)
        x = graph.conv(x, "patch_embed.proj", weight, bias=bias, stride=size.patch)
        flat = graph.integers("flat_patches", [1, size.hidden, size.tokens - 1])
        x = graph.op("Transpose", graph.op("Reshape", x, flat), perm=[0, 2, 1])
        first = rng.normal(0.0, 0.5, (1, 1, size.hidden)).astype(np.float32)
        x = graph.op("Concat", graph.weight("cls_token", first), x, axis=1)
        places = rng.normal(0.0, 0.5, (1, size.tokens, size.hidden)).astype(np.float32)
        return graph.op("Add", x, graph.weight("pos_embed", places))

    def linear(self, x: str, name: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        graph, rng = self.graph, self.rng
        weight = graph.weight(f"{name}.weight_T", linear_weight(rng, inputs, outputs, gain))
        bias = graph.weight(f"{name}.bias", biases(rng, outputs))
        return graph.op("Add", bias, graph.op("MatMul", x, weight))

    def layer_norm(self, x: str, name: str) -> str:
        graph, rng, hidden = self.graph, self.rng, self.size.hidden
        scale = graph.weight(f"{name}.weight", layer_norm_scales(rng, hidden))
        bias = graph.weight(f"{name}.bias", biases(rng, hidden))
        return graph.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=_EPSILON)

    def attention(self, x: str, name: str) -> str:
        graph, size = self.graph, self.size
        hidden, per_head = size.hidden, size.hidden // size.heads
        x = self.linear(x, f"{name}.qkv", hidden, 3 * hidden, ATTENTION_GAIN)
        shape = graph.integers("split_heads", [1, size.tokens, 3, size.heads, per_head])
        x = graph.op("Transpose", graph.op("Reshape", x, shape), perm=[2, 0, 3, 1, 4])
        leading = graph.integers("leading_axis", [0])
        query, key, value = (
            graph.op("Squeeze", part, leading) for part in graph.split(x, [1, 1, 1], 0)
        )
        query = graph.op("Mul", query, graph.scalar("head_scale", 1.0 / np.sqrt(per_head)))
        scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 1, 3, 2]))
        y = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)
        y = graph.op("Transpose", y, perm=[0, 2, 1, 3])
        y = graph.op("Reshape", y, graph.integers("join_heads", [1, size.tokens, hidden]))
        return self.linear(y, f"{name}.proj", hidden, hidden, branch_gain(self.size.layers))

    def layer(self, x: str, name: str) -> str:
        graph, hidden = self.graph, self.size.hidden
        y = self.attention(self.layer_norm(x, f"{name}.norm1"), f"{name}.attn")
        x = graph.op("Add", x, y)
        y = self.linear(self.layer_norm(x, f"{name}.norm2"), f"{name}.mlp.fc1", hidden, 4 * hidden)
        y = graph.erf_gelu(y)
        y = self.linear(y, f"{name}.mlp.fc2", 4 * hidden, hidden, branch_gain(self.size.layers))
        return graph.op("Add", x, y)


RECIPES = (
    Recipe(
        "vit_b16",
        "ViT-B/16 vision transformer, seeded random weights",
        partial(build, Size()),
        partial(images, Size()),
    ),
)
