"""Convolutions of a processed input, and what they mean in NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.schedules import oracles, pooled_convolutions
from tests.schedules.kernels import Case
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step

Layout = tuple[int, int]


def with_prologue(w: ConvWorkload) -> ConvWorkload:
    """The convolution of relu(x * scale + shift)."""
    constant = Operand((1, w.in_channels, *(1,) * len(w.spatial)), "float32")
    steps = (
        Step("multiply", (("value", 0), ("operand", 0))),
        Step("add", (("value", 1), ("operand", 1))),
        Step("relu", (("value", 2),)),
    )
    return replace(w, prologue=Epilogue(steps, (constant, constant)))


def with_sigmoid(w: ConvWorkload) -> ConvWorkload:
    """The convolution of sigmoid(x) * 2, which has no constants of channels."""
    steps = (
        Step("sigmoid", (("value", 0),)),
        Step("multiply", (("value", 1), ("const", 2.0))),
    )
    return replace(w, prologue=Epilogue(steps))


def as_elementwise(w: ConvWorkload) -> Epilogue:
    """The prologue of `with_prologue` as a kernel of its own: the input is its operand 0."""
    assert w.prologue is not None
    steps = (
        Step("multiply", (("operand", 0), ("operand", 1))),
        Step("add", (("value", 0), ("operand", 2))),
        Step("relu", (("value", 1),)),
    )
    return Epilogue(steps, (Operand(w.in_shape, "float32"), *w.prologue.operands), results=0)


def constants_of(w: ConvWorkload) -> list[np.ndarray]:
    """Values for the prologue's operands."""
    assert w.prologue is not None
    return [oracles.random(o.shape, 20 + i) for i, o in enumerate(w.prologue.operands)]


def processed(data: np.ndarray, constants: list[np.ndarray]) -> np.ndarray:
    """What the prologue of `with_prologue`, or that of `with_sigmoid`, makes of an input."""
    x = data.astype("float64")
    if not constants:
        return 2 / (1 + np.exp(-x))
    scale, shift = constants
    return np.maximum(x * scale + shift, 0)


def case(
    name: str, w: ConvWorkload, layout: Layout = (0, 0), **params: Any
) -> tuple[Case, np.ndarray]:
    """A convolution of random numbers and its result; it has a prologue.

    Without a pool its epilogue has a bias, a residual and a relu, with one a bias and a residual.
    A kernel that reads the lanes past the last input channel gets NaN.
    """
    w = pooled_convolutions.with_sums(w) if w.pool else oracles.with_residual(w)
    data, constants = oracles.random(w.in_shape, 1), constants_of(w)
    weight = oracles.random((w.out_channels, w.in_channels // w.groups, *w.kernel), 2)
    operands = oracles.operands_of(w)
    x = processed(data, constants)
    if w.pool:
        expected = pooled_convolutions.expected(w, x, weight, operands)
    else:
        expected = oracles.finished(oracles.conv(w, x, weight), w, operands)
    weights = [weight, *constants]
    made = Case(name, w, [data], weights, operands, layout, params=params, missing=np.nan)
    return made, expected
