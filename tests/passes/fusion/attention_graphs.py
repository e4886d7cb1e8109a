"""Attention of a small model, the parts that tests of groups share."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import op

import tvm_ext
from tests.passes.relax_models import module
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion

BATCH, TOKENS, HEADS, SIZE = 2, 9, 3, 5
SCORES = (BATCH, HEADS, TOKENS, TOKENS)
SHAPES = {"q": (*SCORES[:2], TOKENS, SIZE), "k": (*SCORES[:2], TOKENS, SIZE)}
SHAPES["v"] = SHAPES["k"]


def scores(emit: Any, q: Any, k: Any) -> Any:
    """Scaled products of queries and keys."""
    product = emit(op.matmul(q, emit(op.permute_dims(k, [0, 1, 3, 2]))))
    return emit(op.multiply(product, relax.const(np.float32(SIZE**-0.5))))


def softmax(x: np.ndarray) -> np.ndarray:
    """Of the last axis."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def built(body: Any, *data: np.ndarray, **inputs: tuple[int, ...]) -> tuple[Any, np.ndarray]:
    """The executable and its output for `data`."""
    exe = tvm_ext.build(module(inputs, body))
    return exe, np.asarray(exe(dict(zip(inputs, data, strict=True))))


def close(got: np.ndarray, want: np.ndarray) -> None:
    """Assert that results agree but for rounding."""
    np.testing.assert_allclose(got, want, rtol=0, atol=5e-6 * np.abs(want).max())


def layers_of(body: Any, **inputs: tuple[int, ...]) -> Any:
    """The layers of a model of that body, whatever their cost."""
    fusion = UniversalFusion()
    return layers(fusion(module(inputs, body)))
