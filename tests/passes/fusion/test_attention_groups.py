"""Attention as one group: what is around it, what keeps it apart, and what the kernel computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

import tvm_ext
from tests.passes.fusion.attention_graphs import (
    BATCH,
    HEADS,
    SCORES,
    SHAPES,
    SIZE,
    TOKENS,
    built,
    close,
    layers_of,
    scores,
    softmax,
)
from tests.passes.relax_models import array, const, module
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.target import resolve

WIDTH = HEADS * SIZE
QKV = (BATCH, TOKENS, 3 * WIDTH)
CAUSAL = np.tril(np.ones((1, 1, TOKENS, TOKENS), "bool"))
HOST = resolve("native")


def _plain(emit: Any, q: Any, k: Any, v: Any) -> Any:
    return op.matmul(emit(op.nn.softmax(scores(emit, q, k))), v)


def _head(emit: Any, x: Any, part: int) -> Any:
    """Heads of the part-th of three tensors in one, (batch, heads, tokens, size)."""
    begin = part * WIDTH
    cut = emit(op.strided_slice(x, [2], [begin], [begin + WIDTH], [1]))
    rows = emit(op.reshape(cut, (BATCH, TOKENS, HEADS, SIZE)))
    return emit(op.permute_dims(rows, [0, 2, 1, 3]))


def _merged(emit: Any, qkv: Any) -> Any:
    """Causal attention whose queries, keys and values one product made."""
    q, k, v = (_head(emit, qkv, part) for part in range(3))
    kept = op.where(const(CAUSAL), scores(emit, q, k), relax.const(np.float32(-1e9)))
    result = emit(op.matmul(emit(op.nn.softmax(emit(kept))), v))
    turned = emit(op.permute_dims(result, [0, 2, 1, 3]))
    return op.reshape(turned, (BATCH, TOKENS, WIDTH))


def _want(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> Any:
    plain = q.astype("float64") @ k.swapaxes(-1, -2) * SIZE**-0.5
    return softmax(plain if mask is None else plain + mask) @ v


def test_a_product_a_softmax_and_a_product_are_one_layer() -> None:
    (layer,) = layers_of(_plain, **SHAPES)
    assert layer.ops == ("permute_dims", "matmul", "multiply", "nn.softmax", "matmul")
    w = layer.workload
    assert [x.name for x in layer.inputs] == list("qkv")
    assert (w.producer.kind, w.producer.columns, w.producer.rows) == ("softmax", TOKENS, 54)
    assert w.producer.producer.rhs.strides[-2:] == (1, SIZE)
    assert [s.op for s in w.producer.producer.epilogue.steps] == ["multiply"]
    assert [n for n, a in algorithms(w).items() if a.supports(w, HOST)] == ["attention"]


def test_parts_of_a_merged_product_are_read_in_place() -> None:
    (layer,) = layers_of(_merged, qkv=QKV)
    w, wide = layer.workload, 3 * WIDTH
    strides = (TOKENS * wide, SIZE, wide, 1)
    assert w.rhs == StridedView((BATCH, HEADS, TOKENS, SIZE), strides, 2 * WIDTH)
    inner = w.producer.producer
    assert inner.lhs == StridedView((BATCH, HEADS, TOKENS, SIZE), strides)
    assert inner.rhs.strides == (TOKENS * wide, SIZE, 1, wide) and inner.rhs.offset == WIDTH
    assert w.out.strides == (TOKENS * WIDTH, SIZE, WIDTH, 1)


def test_the_built_attention_of_a_merged_product() -> None:
    data = array(1, *QKV)
    exe, got = built(_merged, data, qkv=QKV)
    assert [entry.algorithm for entry in exe.plan.layers] == ["attention", "view"]
    parts = data.reshape(BATCH, TOKENS, 3, HEADS, SIZE).transpose(2, 0, 3, 1, 4)
    want = _want(*parts, np.where(CAUSAL, 0, -np.inf))
    close(got, want.transpose(0, 2, 1, 3).reshape(got.shape))


@pytest.mark.parametrize(
    "shape", [(BATCH, 1, 1, TOKENS), (1, 1, TOKENS, TOKENS), (TOKENS,), SCORES], ids=str
)
@pytest.mark.parametrize("computed", [False, True])
def test_masks_that_are_added(shape: tuple[int, ...], computed: bool) -> None:
    mask = array(4, *shape)

    def body(emit: Any, q: Any, k: Any, v: Any, *masks: Any) -> Any:
        added = op.add(scores(emit, q, k), masks[0] if masks else const(mask))
        return op.matmul(emit(op.nn.softmax(emit(added))), v)

    data = [array(i, *SHAPES["q"]) for i in range(3)] + [mask] * computed
    inputs = {**SHAPES, **({"mask": shape} if computed else {})}
    exe, got = built(body, *data, **inputs)
    assert [entry.algorithm for entry in exe.plan.layers] == ["attention"]
    close(got, _want(*data[:3], mask))


def test_steps_behind_both_results() -> None:
    """The first without, the second with a computed operand: the kernel's comes last."""
    inputs = {**SHAPES, "mask": (BATCH, 1, 1, TOKENS), "residual": SHAPES["q"]}

    def body(emit: Any, q: Any, k: Any, v: Any, mask: Any, residual: Any) -> Any:
        powers = emit(op.nn.softmax(emit(op.add(scores(emit, q, k), mask))))
        halved = emit(op.multiply(powers, relax.const(np.float32(0.5))))
        return op.add(emit(op.matmul(halved, v)), residual)

    data = [array(i, *shape) for i, shape in enumerate(inputs.values())]
    exe, got = built(body, *data, **inputs)
    assert [entry.algorithm for entry in exe.plan.layers] == ["attention"]
    close(got, 0.5 * _want(*data[:4]) + data[4])


def test_cross_attention_with_a_reshape_between() -> None:
    """Other keys than queries; the stack of the second product has one dimension less."""
    inputs = {"q": (2, 3, 7, 5), "k": (2, 3, 11, 5), "v": (6, 11, 4)}

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        powers = emit(op.nn.softmax(scores(emit, q, k)))
        return op.matmul(emit(op.reshape(powers, (6, 7, 11))), v)

    data = [array(i, *shape) for i, shape in enumerate(inputs.values())]
    _, got = built(body, *data, **inputs)
    close(got, _want(data[0], data[1], data[2].reshape(2, 3, 11, 4)).reshape(6, 7, 4))


def test_a_view_joins_with_the_slice_before_it() -> None:
    """Alone the view costs nothing, and only the two save the slice's copy."""

    def body(emit: Any, qkv: Any) -> Any:
        heads = []
        for begin in (0, 384):
            cut = emit(op.strided_slice(qkv, [2], [begin], [begin + 384], [1]))
            rows = emit(op.reshape(cut, (1, 128, 12, 32)))
            heads.append(emit(op.permute_dims(rows, [0, 2, 1, 3])))
        return op.matmul(heads[0], emit(op.permute_dims(heads[1], [0, 1, 3, 2])))

    plan = tvm_ext.plan(module({"qkv": (1, 128, 3 * 384)}, body), tuning="none")
    assert [entry.algorithm for entry in plan.layers] == ["batch_matmul"]
