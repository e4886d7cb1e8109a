"""GPT-2 small, a decoder (Radford et al. 2019), seeded random weights.

12 layers, hidden size 768, 12 heads, 50257 tokens. The graph is written as PyTorch's exporter
writes the model of the transformers library: query, key and value from one Gemm and a Split, layer
norm and the tanh approximation of GELU operator by operator, the causal mask as a Where, and the
embedding table transposed for the output layer.
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
    layer_norm_scales,
    linear_weight,
)
from benchmarks.zoo.recipe import Inputs, Recipe

_POSITIONS, _EPSILON, _LOGITS_STD = 1024, 1e-5, 2.5


@dataclass(frozen=True)
class Size:
    """The dimensions of a GPT-2; the defaults are those of the small one.

    Attributes
    ----------
    layers, hidden, heads : int
        `hidden` is a multiple of `heads`.
    sequence : int
        Tokens of the input, 1024 at most.
    vocabulary : int
        Rows of the embedding table, which is the output layer's weight too.
    """

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    sequence: int = 128
    vocabulary: int = 50257


def build(size: Size) -> onnx.ModelProto:
    """Make the model: input_ids (1, sequence) to logits (1, sequence, vocabulary)."""
    decoder = _Decoder(size)
    graph, table = decoder.graph, decoder.token_table()
    x = decoder.embeddings(table)
    for i in range(size.layers):
        x = decoder.layer(x, f"h.{i}")
    x = graph.op("MatMul", decoder.layer_norm(x, "ln_f"), graph.op("Transpose", table, perm=[1, 0]))
    shape = (1, size.sequence, size.vocabulary)
    return graph.model(tokens(size, np.random.default_rng(0)), x, shape)


def tokens(size: Size, rng: np.random.Generator) -> Inputs:
    """Draw a random text."""
    ids = rng.integers(0, size.vocabulary, (1, size.sequence))
    return {"input_ids": ids.astype(np.int64)}


class _Decoder:
    """A graph, its dimensions and the random weights that go into it."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.graph = GraphBuilder("gpt2")
        self.rng = np.random.default_rng(2019)

    def token_table(self) -> str:
        """Add the embeddings, scaled for logits of a trained model's spread."""
        size = self.size
        table = linear_weight(self.rng, size.hidden, size.vocabulary, _LOGITS_STD).T
        return self.graph.weight("wte.weight", table)

    def embeddings(self, table: str) -> str:
        """Sum the embeddings of tokens and of positions."""
        graph, size = self.graph, self.size
        places = linear_weight(self.rng, size.hidden, _POSITIONS, _LOGITS_STD).T
        numbers = graph.weight("position_ids", np.arange(size.sequence, dtype=np.int64)[None])
        ids = graph.op("Reshape", "input_ids", graph.integers("ids_shape", [-1, size.sequence]))
        return graph.op(
            "Add",
            graph.op("Gather", table, ids),
            graph.op("Gather", graph.weight("wpe.weight", places), numbers),
        )

    def linear(self, x: str, name: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """Append transformers' Conv1D: a Gemm on all tokens as rows."""
        graph = self.graph
        weight = linear_weight(self.rng, inputs, outputs, gain)
        y = graph.op(
            "Gemm",
            graph.op("Reshape", x, graph.integers(f"rows_{inputs}", [-1, inputs])),
            graph.weight(f"{name}.weight", weight),
            graph.weight(f"{name}.bias", biases(self.rng, outputs)),
            name=name,
        )
        shape = graph.integers(f"tokens_{outputs}", [1, self.size.sequence, outputs])
        return graph.op("Reshape", y, shape)

    def layer_norm(self, x: str, name: str) -> str:
        """Append (x - mean) / sqrt(variance + epsilon) * scale + bias, axis -1."""
        graph, hidden = self.graph, self.size.hidden
        centred = graph.op("Sub", x, graph.op("ReduceMean", x, axes=[-1], keepdims=1))
        squares = graph.op("Pow", centred, graph.scalar("two", 2.0))
        variance = graph.op("ReduceMean", squares, axes=[-1], keepdims=1)
        variance = graph.op("Add", variance, graph.scalar("epsilon", _EPSILON))
        y = graph.op("Div", centred, graph.op("Sqrt", variance))
        scale = graph.weight(f"{name}.weight", layer_norm_scales(self.rng, hidden))
        bias = graph.weight(f"{name}.bias", biases(self.rng, hidden))
        return graph.op("Add", graph.op("Mul", y, scale), bias)

    def attention(self, x: str, name: str) -> str:
        graph, size = self.graph, self.size
        hidden, per_head = size.hidden, size.hidden // size.heads
        x = self.linear(x, f"{name}.c_attn", hidden, 3 * hidden, ATTENTION_GAIN)
        parts = graph.split(x, [hidden] * 3, 2)
        shape = graph.integers("split_heads", [1, size.sequence, size.heads, per_head])
        query, key, value = (
            graph.op("Transpose", graph.op("Reshape", part, shape), perm=perm)
            for part, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scores = graph.op("MatMul", query, key)
        scores = graph.op("Div", scores, graph.scalar("sqrt_head", np.sqrt(per_head)))
        past = np.tri(size.sequence, dtype=np.bool_)[None, None]
        lowest = graph.scalar("lowest", float(np.finfo(np.float32).min))
        scores = graph.op("Where", graph.weight("causal_mask", past), scores, lowest)
        y = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)
        y = graph.op("Transpose", y, perm=[0, 2, 1, 3])
        y = graph.op("Reshape", y, graph.integers("join_heads", [1, size.sequence, hidden]))
        return self.linear(y, f"{name}.c_proj", hidden, hidden, branch_gain(self.size.layers))

    def gelu(self, x: str) -> str:
        """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))."""
        graph = self.graph
        half = graph.op("Mul", x, graph.scalar("half", 0.5))
        cube = graph.op("Pow", x, graph.scalar("three", 3.0))
        y = graph.op("Add", x, graph.op("Mul", cube, graph.scalar("cube_factor", 0.044715)))
        y = graph.op("Mul", y, graph.scalar("sqrt_2_over_pi", np.sqrt(2.0 / np.pi)))
        y = graph.op("Add", graph.op("Tanh", y), graph.scalar("one", 1.0))
        return graph.op("Mul", half, y)

    def layer(self, x: str, name: str) -> str:
        graph, hidden = self.graph, self.size.hidden
        x = graph.op("Add", self.attention(self.layer_norm(x, f"{name}.ln_1"), f"{name}.attn"), x)
        y = self.linear(self.layer_norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc", hidden, 4 * hidden)
        y = self.gelu(y)
        y = self.linear(y, f"{name}.mlp.c_proj", 4 * hidden, hidden, branch_gain(self.size.layers))
        return graph.op("Add", x, y)


RECIPES = (
    Recipe(
        "gpt2",
        "GPT-2 small decoder, sequence length 128, seeded random weights",
        partial(build, Size()),
        partial(tokens, Size()),
    ),
)
