"""Channels through elementwise operators, pools, reductions and norms, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

from tests.passes.pruning.channel_call import OneCall
from tests.passes.relax_models import array, const
from tvm_ext.passes.pruning.channel_pointwise import ELEMENTWISE, RULES

SHAPE = (2, 6, 4, 4)
ALL = {
    **RULES,
    **{f"relax.{name}": ELEMENTWISE for name in ("add", "multiply", "nn.relu", "nn.prelu")},
}
BIAS = const(array(0, 6, 1, 1))

PASSING = {
    "one operand": op.nn.relu,
    "a number": lambda x: op.multiply(x, relax.const(2.0, "float32")),
    "a bias": lambda x: op.add(x, BIAS),
    "a bias on the left": lambda x: op.add(BIAS, x),
    "positions": lambda x: op.add(x, const(array(1, 4))),
    "slopes": lambda x: op.nn.prelu(x, const(array(2, 6)), axis=1),
    "twice": lambda x: op.add(x, x),
    "max pool": lambda x: op.nn.max_pool2d(x, (2, 2), (2, 2)),
    "average pool": lambda x: op.nn.avg_pool2d(x, (2, 2), (2, 2)),
    "mean": lambda x: op.mean(x, [2, 3]),
    "maximum": lambda x: op.max(x, [-1], keepdims=True),
    "softmax of positions": lambda x: op.nn.softmax(x, 3),
    "running sum of positions": lambda x: op.cumsum(x, 2),
    "rms norm of positions": lambda x: op.nn.rms_norm(x, const(array(5, 4)), [-1]),
    "instance norm": lambda x: op.nn.instance_norm(
        x, const(array(3, 6)), const(array(4, 6)), 1, [2, 3]
    ),
}


@pytest.mark.parametrize("make", PASSING.values(), ids=PASSING)
def test_channels_pass(make: Callable[[Any], Any]) -> None:
    one = OneCall(ALL, make, SHAPE, 1)
    assert one.reason == ""
    ids = one.channels.ids
    np.testing.assert_array_equal(ids.roots(one.axes[0][1]), ids.roots(one.ids))
    assert all(axis is None for i, axis in enumerate(one.axes[0][:2]) if i != 1)
    for gone in ((), (0,), (1, 4), range(5)):
        one.check_shrunk(gone)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda x: op.sum(x, [1, 2]), "computes over them"),
        (lambda x: op.mean(x), "computes over them"),
        (lambda x: op.argmax(x, 1), "computes over them"),
        (lambda x: op.argmin(x), "computes over them"),
        (lambda x: op.nn.log_softmax(x, -3), "computes over them"),
        (lambda x: op.cumsum(x), "computes over them"),
        (lambda x: op.nn.max_pool2d(x, (2, 2), layout="NHWC"), "reads them as positions"),
        (
            lambda x: op.nn.layer_norm(
                x, const(array(0, 6, 4, 4)), const(array(1, 6, 4, 4)), [1, 2, 3]
            ),
            "normalises over them",
        ),
        (lambda x: op.nn.rms_norm(x, const(array(0, 6)), [1]), "normalises over them"),
        (
            lambda x: op.nn.layer_norm(x, const(array(0, 6)), const(array(1, 6)), [1]),
            "normalises over them",
        ),
    ],
)
def test_channels_stay(make: Callable[[Any], Any], why: str) -> None:
    one = OneCall(ALL, make, SHAPE, 1)
    assert one.reason.endswith(why)
    assert all(axis is None for axis in one.axes[0])


def test_a_reduction_moves_the_axes_behind_it() -> None:
    one = OneCall(ALL, lambda x: op.sum(x, [0]), SHAPE, 1)
    np.testing.assert_array_equal(one.axes[0][0], one.ids)
    kept = OneCall(ALL, lambda x: op.sum(x, [0], keepdims=True), SHAPE, 1)
    np.testing.assert_array_equal(kept.axes[0][1], kept.ids)


def test_positions_have_no_channels_behind_a_window() -> None:
    one = OneCall(ALL, lambda x: op.nn.avg_pool2d(x, (2, 2)), SHAPE, 3)
    assert one.reason.endswith("reads them as positions")
