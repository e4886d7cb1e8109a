"""What looks like attention, and why no kernel computes all of it."""

from __future__ import annotations

from typing import Any

import pytest
from tvm.relax import op

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
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.kernel_parts import NoKernel


def _scores_alone(emit: Any, q: Any, k: Any, v: Any) -> Any:
    return op.nn.softmax(scores(emit, q, k))


def _softmax_alone(emit: Any, q: Any, k: Any, v: Any) -> Any:
    turned = emit(op.permute_dims(k, [0, 1, 3, 2]))
    return op.matmul(emit(op.nn.softmax(q)), turned)


def _constant_keys(emit: Any, q: Any, k: Any, v: Any) -> Any:
    product = emit(op.matmul(q, const(array(5, SIZE, TOKENS))))
    return op.matmul(emit(op.nn.softmax(product)), v)


def _other_axis(emit: Any, q: Any, k: Any, v: Any) -> Any:
    return op.matmul(emit(op.nn.softmax(scores(emit, q, k), axis=-2)), v)


def _step_with_operand(emit: Any, q: Any, k: Any, v: Any) -> Any:
    dropped = op.multiply(emit(op.nn.softmax(scores(emit, q, k))), const(array(6, *SCORES)))
    return op.matmul(emit(dropped), v)


def _transposed_scores(emit: Any, q: Any, k: Any, v: Any) -> Any:
    powers = emit(op.nn.softmax(scores(emit, q, k)))
    return op.matmul(emit(op.permute_dims(powers, [0, 1, 3, 2])), v)


def _read_twice(emit: Any, q: Any, k: Any, v: Any) -> Any:
    powers = emit(op.nn.softmax(scores(emit, q, k)))
    return op.concat([emit(op.matmul(powers, v)), powers], 3)


def _values_of_softmax(emit: Any, q: Any, k: Any, v: Any) -> Any:
    powers = emit(op.nn.softmax(scores(emit, q, k)))
    return op.matmul(powers, powers)


def _wider_rows(emit: Any, q: Any, k: Any, v: Any) -> Any:
    """Rows of the softmax are several rows of scores."""
    few = emit(op.strided_slice(q, [2], [0], [6]))  # 6 queries x 9 keys are 2 rows of 27
    rows = emit(op.reshape(scores(emit, few, k), (BATCH, HEADS, 2, 27)))
    return op.matmul(emit(op.nn.softmax(rows)), emit(op.reshape(v, (BATCH, 1, 27, SIZE))))


def _other_stacks(emit: Any, q: Any, k: Any, v: Any) -> Any:
    """One head's scores for all values."""
    first = [emit(op.strided_slice(x, [0, 1], [0, 0], [1, 1])) for x in (q, k)]
    return op.matmul(emit(op.nn.softmax(scores(emit, *first))), v)


def _turned_scores(emit: Any, q: Any, k: Any, v: Any) -> Any:
    turned = emit(op.permute_dims(scores(emit, q, k), [0, 1, 3, 2]))
    return op.matmul(emit(op.nn.softmax(turned)), v)


WHOLE = [
    (_scores_alone, "a softmax computes its scores only together with the product behind it"),
    (_softmax_alone, "a product computes its softmax only together with the scores"),
    (_constant_keys, "a product computes its softmax only together with the scores"),
    (_step_with_operand, "a step behind the softmax reads another tensor"),
    (_transposed_scores, "the kernel of nn.softmax stores its result in its own order"),
    (_other_stacks, "the scores are read several times"),
    (_turned_scores, "a product's columns are stored next to each other"),
    (_wider_rows, r"scores \(2, 3, 6, 9\) are read as rows of \(2, 3, 2, 27\)"),
]
APART = [body for body, _ in WHOLE] + [_other_axis, _read_twice, _values_of_softmax]


@pytest.mark.parametrize(("body", "reason"), WHOLE, ids=[body.__name__ for body, _ in WHOLE])
def test_no_kernel_computes_the_whole(body: Any, reason: str) -> None:
    pairs = df.bindings(module(SHAPES, body)["main"])
    read = {var for _, expr in pairs for var in df.free_vars(expr)}
    assert [var for var, _ in pairs if var not in read] == [pairs[-1][0]]
    with pytest.raises(NoKernel, match=reason):
        kernel_form(pairs)


@pytest.mark.parametrize("body", APART)
def test_others_stay_apart(body: Any) -> None:
    found = layers_of(body, **SHAPES)
    producers = [getattr(layer.workload, "producer", None) for layer in found]
    assert len(found) > 1
    assert all(getattr(producer, "producer", None) is None for producer in producers)


@pytest.mark.parametrize("body", [_transposed_scores, _step_with_operand, _values_of_softmax])
def test_what_stays_apart_computes_the_same(body: Any) -> None:
    data = [array(i, *SHAPES["q"]) for i in range(3)]
    _, got = built(body, *data, **SHAPES)
    made = softmax(data[0].astype("float64") @ data[1].swapaxes(-1, -2) * SIZE**-0.5)
    want = {
        "_transposed_scores": lambda: made.swapaxes(-1, -2) @ data[2],
        "_step_with_operand": lambda: (made * array(6, *SCORES)) @ data[2],
        "_values_of_softmax": lambda: made @ made,
    }[body.__name__]()
    close(got, want)
