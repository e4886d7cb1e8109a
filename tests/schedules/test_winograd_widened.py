"""Winograd convolution of what a 1x1 convolution or a pool makes, against numpy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules.kernels import (
    HOST,
    NEON,
    TARGETS,
    Case,
    assembly,
    run_all,
    same_on_any_threads,
)
from tests.schedules.oracles import conv, conv_workload, operands_of, random, with_residual
from tests.schedules.prologues import constants_of, processed, with_prologue
from tests.schedules.test_producer_stage import behind, pooling
from tests.schedules.test_producer_stage import case as case_of_rows
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step

V = HOST.lanes
NAMES = ("winograd_2x2", "winograd_4x4")


def bottleneck(
    inputs: int, wide: int, outputs: int, spatial: tuple[int, int], *, pad: int = 1, batch: int = 1,
    prologue: bool = False, steps: bool = True,
) -> ConvWorkload:  # fmt: skip
    """relu(3x3(relu(1x1(x) + shift)) + bias + residual), of x or of what a prologue makes of it."""
    first = conv_workload(inputs, spatial, wide, 1, batch=batch)
    if prologue:
        first = with_prologue(first)
    last = conv_workload(wide, spatial, outputs, 3, 1, pad, batch=batch)
    if steps:
        shift = Operand((1, wide, 1, 1), "float32")
        chain = (Step("add", (("value", 0), ("operand", 0))), Step("relu", (("value", 1),)))
        first, last = replace(first, epilogue=Epilogue(chain, (shift,))), with_residual(last)
    return replace(last, producer=first)


def case(name: str, w: ConvWorkload, seed: int, **fields: Any) -> tuple[Case, np.ndarray]:
    """A kernel and what it is to compute, convolution by convolution."""
    first = w.producer
    data = random(first.in_shape, seed)
    one = random((first.out_channels, first.in_channels, 1, 1), 1)
    one /= np.float32(np.sqrt(first.in_channels))
    three = random((w.out_channels, w.in_channels, 3, 3), 2)
    three /= np.float32(3 * np.sqrt(w.in_channels))
    constants = constants_of(first) if first.prologue else []
    given, operands = operands_of(first, 3), operands_of(w, 11)
    value: Any = data.astype("float64")
    if first.prologue:
        value = processed(value, constants)
    value = conv(first, value, one)
    value = np.maximum(value + given[0], 0) if given else value
    want = conv(w, value, three)
    want = np.maximum(want + operands[0] + operands[1], 0) if operands else want
    made = Case(
        name, w, data=[data], weights=[three, one, *constants], operands=[*given, *operands],
        layout=(V, V), **fields,
    )  # fmt: skip
    return made, want


CASES = {
    "whole blocks": bottleneck(2 * V, 4 * V, 2 * V, (14, 14)),
    "odd channels": bottleneck(V + 3, 2 * V + 5, V - 1, (9, 11)),
    "a prologue": bottleneck(3 * V + 1, 2 * V, V, (15, 8), prologue=True),
    "a prologue, batch 3": bottleneck(5, V, 3, (7, 7), batch=3, prologue=True),
    "no padding": bottleneck(V, V, V, (10, 9), pad=0),
    "more padding": bottleneck(V, 2 * V, V, (8, 9), pad=2),
    "one position": bottleneck(V, 2 * V, V, (1, 1)),
    "no steps": bottleneck(V, V, V + 2, (12, 10), steps=False),
}


@pytest.mark.parametrize("name", NAMES)
def test_matches_numpy(name: str) -> None:
    made = [case(name, w, i, missing=np.nan) for i, w in enumerate(CASES.values())]
    results = run_all([c for c, _ in made])
    for key, (_, want), got in zip(CASES, made, results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3, err_msg=key)


@pytest.mark.parametrize("prologue", [False, True])
def test_strips_of_any_number_give_the_same(prologue: bool) -> None:
    made = []
    w = bottleneck(V + 2, 4 * V, V, (22, 13), prologue=prologue)
    for rows, strips in ((1, 1), (1, 6), (1, 4), (2, 3), (2, 2), (6, 1)):
        for wide_blocks in (1, 2):
            params = {"rows": rows, "strips": strips, "wide_blocks": wide_blocks, "wide_tile": 5}
            made.append(case("winograd_4x4", w, rows, params=params))
    for (c, want), got in zip(made, run_all([c for c, _ in made]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3, err_msg=str(c.params))


def test_threads_make_the_same_bits() -> None:
    w = bottleneck(V, 4 * V, V, (28, 28), prologue=True)
    same_on_any_threads([case("winograd_4x4", w, 0)[0]])


@pytest.mark.parametrize("name", NAMES)
def test_pools_are_computed_between_the_padding(name: str) -> None:
    producers = [
        pooling("max", V + 1, (14, 18), 2, 2, 0),
        pooling("avg", 2 * V, (13, 15), 3, 2, 1, batch=2),
        pooling("max", V, (9, 9), 3, 1, 1),
    ]
    made = []
    for i, producer in enumerate(producers):
        c, want = case_of_rows(behind(producer, V, 3, 1, 1), i)
        made.append((replace(c, algorithm=name), want))
    for (c, want), got in zip(made, run_all([c for c, _ in made]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3, err_msg=str(c.workload))


@pytest.mark.parametrize("name", TARGETS)
def test_other_targets(name: str) -> None:
    v = TARGETS[name].lanes
    w = bottleneck(2 * v, 4 * v, 2 * v, (14, 14), prologue=True)
    text = assembly("winograd_4x4", w, TARGETS[name], (v, v))
    assert ("vfmadd" if name == "avx512" else "fmla") in text


def test_both_convolutions_cost(steady: None) -> None:
    winograd, spatial_pack = algorithms()["winograd_4x4"], algorithms()["spatial_pack"]
    w = bottleneck(256, 128, 32, (56, 56))
    alone, first = replace(w, producer=None), w.producer
    together = winograd.cost(w, winograd.default(w, NEON), NEON)
    apart = winograd.cost(alone, winograd.default(alone, NEON), NEON)
    apart += spatial_pack.cost(first, spatial_pack.default(first, NEON), NEON)
    assert 0.8 * apart < together < 1.1 * apart
    # Each of many tasks computes the two rows that it shares with its neighbours.
    params = {**winograd.default(w, NEON), "rows": 1, "strips": 7}
    assert winograd.cost(w, {**params, "strips": 1}, NEON) > winograd.cost(w, params, NEON)


W = CASES["whole blocks"]


def _first(**changes: Any) -> ConvWorkload:
    return replace(W, producer=replace(W.producer, **changes))


@pytest.mark.parametrize(
    "w, reason",
    [
        (_first(kernel=(3, 3)), "a producer other than a 1x1 convolution"),
        (_first(groups=2), "a producer other than a 1x1 convolution"),
        (_first(strides=(2, 2)), "a producer other than a 1x1 convolution"),
        (_first(dtype="float16"), "not of float32"),
        (
            _first(epilogue=Epilogue((), (Operand((1, 4 * V, 14, 14), "float32"),))),
            "operand 0 of a producer has shape",
        ),
    ],
)
def test_refusals(w: ConvWorkload, reason: str) -> None:
    assert reason in algorithms()["winograd_4x4"].supports(w, HOST).reason


def test_panels_of_the_first_convolution_share_no_block() -> None:
    algorithm, w = algorithms()["winograd_4x4"], bottleneck(V, 3 * V, V, (14, 14))
    params = {**algorithm.default(w, HOST), "wide_blocks": 2}
    assert "wide_blocks = 2" in algorithm.check(w, params, HOST)
