"""Which channels are followed through which operators, and the reasons for which others stay."""

from __future__ import annotations

import re

import pytest
from tvm.relax import op

from tests.passes.pruning.channel_build import pruned
from tests.passes.pruning.channel_evaluation import evaluate
from tests.passes.relax_models import array
from tvm_ext.passes import dataflow as df


def _left(body, name="a", **options):
    """How many of 8 filters of a layer are left, and why."""
    new, report, mod = pruned(body, **options)
    x = array(5, *df.shape_of(mod["main"].params[0]))
    results = zip(_tensors(evaluate(new, x)), _tensors(evaluate(mod, x)), strict=True)
    assert all(a.shape == b.shape for a, b in results)
    return report[name].filters, report[name].note


def _tensors(result):
    return result if isinstance(result, list) else [result]


def _attention(b, x):
    """Heads: channels are taken apart and transposed with positions."""
    q, k = (b.emit(op.matmul(x, b.weights(n, 8, 8)), n) for n in "ab")
    q, k = (
        b.emit(op.permute_dims(b.emit(op.reshape(y, (1, 5, 2, 4))), [0, 2, 1, 3])) for y in (q, k)
    )
    return b.emit(op.matmul(q, b.emit(op.permute_dims(k, [0, 1, 3, 2]))))


def _scores(b, x):
    """One head: queries and keys meet in a product, whose channels can go."""
    q, k = (b.emit(op.matmul(x, b.weights(n, 8, 8)), n) for n in "ab")
    return b.emit(op.matmul(q, b.emit(op.permute_dims(k, [0, 2, 1]))))


def _input_added(b, x):
    return b.head(b.emit(op.add(b.conv("a", x, 8), x)))


def _input_joined(b, x):
    return b.head(b.concat(x, b.relu(b.conv("a", x, 8))))


def _sliced_with_steps(b, x):
    y = b.conv("a", x, 8)
    y = b.emit(op.strided_slice(y, [1, 2], [7, 0], [-100, 4], [-2, 1]))
    return b.head(b.emit(op.flip(y, 1)))


def _normalised(b, x):
    y = b.conv("a", x, 8, 3)
    one, two = b.weights("gamma", 8), b.weights("beta", 8)
    return b.head(b.emit(op.nn.instance_norm(y, one, two, 1, [2, 3])))


def _unflattened(b, x):
    """(1, C, H, W) -> (C, H W) -> (1, C H W) -> (1, C, H W), which is a box all the time."""
    y = b.emit(op.reshape(b.conv("a", x, 8), (8, 36)))
    y = b.emit(op.expand_dims(b.emit(op.flatten(y)), [0]))
    y = b.emit(op.squeeze(b.emit(op.reshape(y, (1, 1, 8, 36))), [1]))
    return b.dense("head", b.emit(op.max(y, [2])), 5)


def _spatial_attention(b, x):
    """A mask of one channel is broadcast over all."""
    y = b.conv("a", x, 8)
    mask = b.emit(op.sigmoid(b.conv("m", y, 1)))
    return b.head(b.emit(op.multiply(y, b.emit(op.broadcast_to(mask, (1, 8, 6, 6))))))


def _mean_over_channels(b, x):
    return b.emit(op.mean(b.emit(op.permute_dims(b.conv("a", x, 8), [0, 2, 3, 1])), [3]))


@pytest.mark.parametrize(
    ("body", "shape", "left", "why"),
    [
        (lambda b, x: b.conv("a", x, 8), (1, 3, 6, 6), 8, "an output of the model has them"),
        (_input_added, (1, 8, 6, 6), 8, "add .* combines them with channels that stay"),
        (_input_joined, (1, 3, 6, 6), 4, "^$"),
        (_attention, (1, 5, 8), 8, "splits them over axes"),
        (_scores, (1, 5, 8), 4, "^$"),
        (_sliced_with_steps, (1, 3, 6, 6), 4, "^$"),
        (_normalised, (1, 3, 6, 6), 4, "^$"),
        (_unflattened, (1, 3, 6, 6), 4, "^$"),
        (_spatial_attention, (1, 3, 6, 6), 8, "combines them with channels that stay"),
        (lambda b, x: b.head(b.emit(op.nn.softmax(b.conv("a", x, 8), 1))), (1, 3, 6, 6), 8,
         "nn.softmax lv.* computes over them"),
        (lambda b, x: b.head(b.emit(op.cumsum(b.conv("a", x, 8), 1))), (1, 3, 6, 6), 8,
         "cumsum lv.* computes over them"),
        (lambda b, x: b.emit(op.sum(b.conv("a", x, 8), [1])), (1, 3, 6, 6), 8,
         "sum .* computes over them"),
        (_mean_over_channels, (1, 3, 6, 6), 8, "mean .* computes over them"),
    ],
)  # fmt: skip
def test_channels_are_followed_or_stay_with_a_reason(body, shape, left, why):
    filters, note = _left(body, shape=shape)
    assert filters == left
    assert re.search(why, note), note


def test_an_unknown_operator_keeps_its_channels():
    def body(b, x):
        return b.head(b.emit(op.tril(b.conv("a", x, 8))))

    _, report, _ = pruned(body)
    assert report["a"].filters == 8
    assert report["a"].note.startswith("tril lv")
    assert "isn't an operator that channels can be followed through" in report["a"].note


def test_groups_that_would_keep_different_numbers_stay():
    """Of the first group nothing can go, as its inputs come from the model's input."""

    def body(b, x):
        y = b.concat(b.emit(op.add(x, b.conv("a", x, 4))), b.conv("b", x, 4))
        return b.head(b.conv("c", y, 8, groups=2))

    _, report, _ = pruned(body, (1, 4, 6, 6))
    assert report["b"].filters == 4
    assert "no number less can go from each group alike" in report["b"].note
