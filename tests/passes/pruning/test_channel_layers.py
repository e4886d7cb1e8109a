"""Channels through a convolution, product or batch norm, and what is left of its weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm.relax import op

from tests.passes.pruning.channel_call import OneCall
from tests.passes.relax_models import array, const
from tvm_ext.passes.pruning.channel_layers import RULES

SHAPE = (2, 6, 4, 4)


def conv(filters: int, groups: int = 1, size: int = 3) -> Callable[[Any], Any]:
    weights = const(array(filters, filters, 6 // groups, size, size))
    return lambda x: op.nn.conv2d(x, weights, padding=size // 2, groups=groups)


LAYERS = {
    "convolution": (conv(5), SHAPE, 1),
    "pointwise": (conv(5, size=1), SHAPE, 1),
    "one filter": (conv(1), SHAPE, 1),
    "dense": (lambda x: op.matmul(x, const(array(0, 6, 5))), (3, 6), 1),
    "dense, batched": (lambda x: op.matmul(x, const(array(0, 6, 5))), (2, 3, 6), 2),
    "dense, one column": (lambda x: op.matmul(x, const(array(0, 6, 1))), (3, 6), 1),
    "one dimension": (
        lambda x: op.nn.conv1d(x, const(array(1, 5, 6, 3)), padding=1), (2, 6, 7), 1
    ),
    "transposed": (
        lambda x: op.nn.conv2d_transpose(x, const(array(2, 6, 3, 2, 2)), strides=(2, 2)), SHAPE, 1
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "shape", "axis"), LAYERS.values(), ids=LAYERS)
def test_what_a_layer_reads_can_go(
    make: Callable[[Any], Any], shape: tuple[int, ...], axis: int
) -> None:
    """Of weights for channels that are gone nothing is left; filters are others' channels."""
    one = OneCall(RULES, make, shape, axis, sums=True)
    assert one.reason == ""
    out = [a for a in one.axes[0] if a is not None]
    assert not any(np.isin(one.channels.ids.roots(a), one.ids).any() for a in out)
    one.check_shrunk((1, 4))


@pytest.mark.parametrize("name", ["convolution", "pointwise", "dense", "dense, batched"])
def test_filters_can_go(name: str) -> None:
    one = OneCall(RULES, *LAYERS[name])
    (filters,) = [a for a in one.axes[0] if a is not None]
    assert len(filters) == 5
    one.check_shrunk((), filters[[0, 3]])


def test_filters_of_a_depthwise_convolution_go_with_what_they_read() -> None:
    for multiplier in (1, 2):
        one = OneCall(RULES, conv(6 * multiplier, groups=6), SHAPE, 1)
        ids = one.channels.ids
        np.testing.assert_array_equal(ids.roots(one.axes[0][1]), np.repeat(one.ids, multiplier))
        one.check_shrunk((0, 4))


def test_groups_keep_the_same_numbers() -> None:
    one = OneCall(RULES, conv(8, groups=2), SHAPE, 1, sums=True)
    (name, filters), (_, read) = one.channels.balanced
    assert name == one.channels.layers[one.var].name
    np.testing.assert_array_equal(filters, one.axes[0][1].reshape(2, 4))
    np.testing.assert_array_equal(read, one.ids.reshape(2, 3))
    one.check_shrunk((), filters[[0, 0, 1, 1], [0, 3, 1, 2]])
    one.check_shrunk((1, 5))


def test_a_note_keeps_the_filters() -> None:
    one = OneCall(RULES, *LAYERS["convolution"])
    (layer,) = one.channels.layers.values()
    noted = OneCall(RULES, *LAYERS["convolution"], notes={layer.name: "too dear"})
    reasons = noted.channels.ids.reasons()
    assert {reasons[int(i)] for i in noted.axes[0][1]} == {f"{layer.name}: too dear"}
    assert noted.reason == ""


def test_batch_norms() -> None:
    constants = [const(np.abs(array(k, 6)) + 0.1) for k in range(4)]
    one = OneCall(
        RULES, lambda x: op.nn.batch_norm(x, *constants, axis=1, training=False), SHAPE, 1
    )
    assert one.reason == ""
    one.check_shrunk((1, 4))


@pytest.mark.parametrize(
    ("make", "shape", "axis", "why"),
    [
        (conv(5), SHAPE, 2, "reads them as positions"),
        (lambda x: op.nn.conv2d(const(array(0, 1, 6, 4, 4)), x), (5, 6, 3, 3), 1,
         "has no constant floating-point weights"),
        (lambda x: op.matmul(x, const(array(0, 6))), (3, 6), 1, "multiplies with a vector"),
        (lambda x: op.nn.conv2d_transpose(x, const(array(0, 6, 2, 2, 2)), groups=2), SHAPE, 1,
         "is transposed and in groups"),
    ],
)  # fmt: skip
def test_reasons(make: Callable[[Any], Any], shape: tuple[int, ...], axis: int, why: str) -> None:
    one = OneCall(RULES, make, shape, axis)
    assert one.reason.endswith(why)
