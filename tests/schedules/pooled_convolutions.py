"""The hard cases of convolutions with a pool stage, and the checks that algorithms share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.schedules import oracles
from tests.schedules.kernels import (
    HOST,
    TARGETS,
    Case,
    assembly,
    fma_lines,
    run,
    same_on_any_threads,
)
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload, PoolStage
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step

Pair = int | tuple[int, int]
Layout = tuple[int, int]
# Stages that between them have padding, windows that are cut, rows that two tasks need.
FEW = ("2x2 stride 2", "2x2 stride 2, ceil", "3x3 stride 2, padded", "average with the padding")


def with_pool(
    w: ConvWorkload, kind: str, kernel: Pair, stride: Pair, pad: Pair = 0, *,
    after: Pair | None = None, ceil: bool = False, include: bool = False,
) -> ConvWorkload:  # fmt: skip
    """The convolution with a pool stage; one number is the same in every dimension."""

    def every(x: Pair) -> tuple[int, ...]:
        return (x,) * len(w.spatial) if isinstance(x, int) else x

    window, step, before = every(kernel), every(stride), every(pad)
    behind = before if after is None else every(after)
    out = []
    for n, k, s, b, a in zip(w.conv_spatial, window, step, before, behind, strict=True):
        span = n + b + a - k
        out.append((-(-span // s) if ceil else span // s) + 1)
    return replace(w, pool=PoolStage(kind, window, step, before, behind, tuple(out), include))


def with_sums(w: ConvWorkload) -> ConvWorkload:
    """The workload with an epilogue that keeps the sign: result + bias + residual."""
    steps = (
        Step("add", (("value", 0), ("operand", 0))),
        Step("add", (("value", 1), ("operand", 1))),
    )
    shapes = ((1, w.out_channels, *(1,) * len(w.spatial)), w.conv_shape)
    return replace(w, epilogue=Epilogue(steps, tuple(Operand(s, "float32") for s in shapes)))


def expected(
    w: ConvWorkload, data: np.ndarray, weight: np.ndarray, operands: list[np.ndarray]
) -> np.ndarray:
    """The convolution, the sums of its epilogue, its pool."""
    assert w.pooling is not None
    finished = oracles.conv(w, data, weight) + sum(x.astype("float64") for x in operands)
    return oracles.pool(w.pooling, finished)


def case(
    name: str, w: ConvWorkload, layout: Layout = (0, 0), **params: Any
) -> tuple[Case, np.ndarray]:
    """A convolution of random numbers, with sums as its epilogue and a pool."""
    w = with_sums(w)
    data = oracles.random(w.in_shape, 1)
    weight = oracles.random((w.out_channels, w.in_channels // w.groups, *w.kernel), 2)
    operands = oracles.operands_of(w)
    made = Case(name, w, [data], [weight], operands, layout, params=params, missing=np.nan)
    return made, expected(w, data, weight, operands)


def stages(w: ConvWorkload) -> dict[str, ConvWorkload]:
    """The convolution with every kind of pool stage."""
    return {
        "2x2 stride 2": with_pool(w, "max", 2, 2),
        "2x2 stride 2, ceil": with_pool(w, "max", 2, 2, ceil=True),
        "2x2 stride 2, average": with_pool(w, "avg", 2, 2),
        "2x2 stride 2, average, ceil": with_pool(w, "avg", 2, 2, ceil=True),
        "3x3 stride 2, padded": with_pool(w, "max", 3, 2, 1),
        "3x3 stride 2": with_pool(w, "max", 3, 2),
        "3x3 stride 2, ceil": with_pool(w, "max", 3, 2, ceil=True),
        "3x3 stride 1": with_pool(w, "max", 3, 1, 1),
        "average of what is inside": with_pool(w, "avg", 3, 2, 1, ceil=True),
        "average with the padding": with_pool(w, "avg", 3, 2, 1, include=True),
        "uneven padding": with_pool(w, "avg", 3, 2, (0, 1), after=(1, 0), include=True),
        "stride past the kernel": with_pool(w, "max", 2, 3),
        "oblong": with_pool(w, "max", (1, 4), (2, 3), (0, 2)),
        "5x5 stride 1": with_pool(w, "max", 5, 1, 2),
        "one window": with_pool(w, "avg", w.conv_spatial, 1),
    }


def assert_matches_numpy(
    name: str, w: ConvWorkload, layout: Layout, tolerance: float,
    keys: Sequence[str] = (), **params: Any,
) -> None:  # fmt: skip
    """Every pool stage behind the convolution, or those named."""
    cases = {
        key: case(name, pooled, layout, **params)
        for key, pooled in stages(w).items()
        if key in (keys or stages(w))
    }
    oracles.agree(cases, tolerance)


def assert_special_values_are_pooled(name: str, layout: Layout) -> None:
    """NaN comes out of every window that holds it, and -inf of those with nothing else.

    The values come from the residual, so that each of them is in one place of what is pooled.
    """
    w = with_sums(with_pool(conv_workload(4, (9, 12), 8, 3, 1, 1), "max", 3, 2, 1))
    data, weight = oracles.random(w.in_shape, 1), oracles.random((8, 4, 3, 3), 2)
    bias, residual = oracles.operands_of(w)
    residual[0, 0, 0, 0], residual[0, 1, 8, 11], residual[0, 2, 4, 5] = np.nan, np.nan, np.inf
    residual[0, 3] = -np.inf
    want = expected(w, data, weight, [bias, residual])
    assert np.isnan(want).sum() == 2
    assert np.isposinf(want).any()
    assert np.isneginf(want[0, 3]).all()
    got = run(name, w, data=[data], weights=[weight], operands=[bias, residual], layout=layout)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def assert_threads_change_no_bit(name: str, layout: Layout, **params: Any) -> None:
    """Many small tasks, on one thread and on all."""
    w = with_pool(conv_workload(8, (33, 20), 40, 3, 1, 1, batch=2), "max", 3, 2, 1)
    made, _ = case(name, w, layout, **params)
    same_on_any_threads([made])


def assert_refuses_other_pools(name: str, dimensions: str = "2") -> None:
    """Other kinds, and other numbers of dimensions."""
    plane, line = conv_workload(8, (9, 9), 8, 3, 1, 1), conv_workload(8, (9,), 8, 3, 1, 1)
    support = algorithms()[name].supports(with_pool(plane, "l2", 2, 2), HOST)
    assert support.reason == "a pool stage of kind 'l2'; only max and avg"
    if algorithms()[name].supports(line, HOST):
        support = algorithms()[name].supports(with_pool(line, "max", 2, 2), HOST)
        only = f"a pool stage of 1 spatial dimensions; only {dimensions}"
        assert support.reason == only


def assert_uses_vectors(name: str, target: str, layout: Layout = (0, 0)) -> None:
    """On another target multiply-adds and maxima are on its widest vectors."""
    w = with_pool(conv_workload(16, (32, 32), 32, 3, 1, 1), "max", 3, 2, 1)
    text = assembly(name, w, TARGETS[target], layout)
    width, compare = ("zmm", "vcmp") if target == "avx512" else (".4s", "fcmgt")
    assert any(width in line for line in fma_lines(text))
    assert any(width in line for line in text.splitlines() if compare in line)
