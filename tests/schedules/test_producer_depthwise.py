"""`spatial_pack` of what a depthwise convolution computes, in one kernel."""

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
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.target import CpuTarget

V = HOST.lanes


def pair(
    channels: int, outputs: int, spatial: tuple[int, int], kernel: int = 3, stride: int = 1,
    *, dilation: int = 1, batch: int = 1, steps: bool = True, residual: bool = True,
) -> ConvWorkload:  # fmt: skip
    """A 1x1 convolution of relu(depthwise(x) * scale + shift)."""
    before = conv_workload(
        channels, spatial, channels, kernel, stride, dilation * (kernel - 1) // 2,
        groups=channels, dilation=dilation, batch=batch,
    )  # fmt: skip
    if steps:
        per_channel = Operand((1, channels, 1, 1), "float32")
        chain = (
            Step("multiply", (("value", 0), ("operand", 0))),
            Step("add", (("value", 1), ("operand", 1))),
            Step("relu", (("value", 2),)),
        )
        before = replace(before, epilogue=Epilogue(chain, (per_channel, per_channel)))
    w = conv_workload(channels, before.out_spatial, outputs, 1, batch=batch)
    return replace(with_residual(w) if residual else w, producer=before)


def with_window(w: ConvWorkload, kernel: int, stride: int, pad: int) -> ConvWorkload:
    """The pair with another window of the second convolution."""
    before = w.producer
    other = conv_workload(
        w.in_channels, before.out_spatial, w.out_channels, kernel, stride, pad, batch=w.batch
    )
    return replace(with_residual(other), producer=before)


def case(w: ConvWorkload, seed: int, **fields: Any) -> tuple[Case, np.ndarray]:
    """A kernel and what it is to compute, step by step in float64."""
    before = w.producer
    assert before is not None
    data, filters = random(before.in_shape, seed), random((w.in_channels, 1, *before.kernel), 1)
    weight = random((w.out_channels, w.in_channels, *w.kernel), 2) / np.float32(
        np.sqrt(w.in_channels)
    )
    operands = [*operands_of(before, 3), *operands_of(w, 11)]
    middle = conv(before, data, filters)
    if before.epilogue.steps:
        middle = np.maximum(middle * operands[0] + operands[1], 0)
    want = conv(w, middle, weight)
    if w.epilogue.steps:
        want = np.maximum(want + operands[-2] + operands[-1], 0)
    made = Case(
        "spatial_pack", w, data=[data], weights=[weight, filters], operands=operands,
        layout=(V, V), **fields,
    )  # fmt: skip
    return made, want


CASES = {
    "whole blocks": pair(2 * V, 3 * V, (14, 14)),
    "odd channels": pair(V + 3, V - 1, (9, 11)),
    "stride 2": pair(V, 2 * V, (15, 14), stride=2),
    "5x5, batch 3": pair(V + 1, 5, (12, 13), 5, batch=3),
    "dilated": pair(V, V, (12, 12), dilation=2),
    "7x7 stride 2": pair(3, V + 2, (17, 18), 7, 2),
    "one position": pair(V, V, (1, 1)),
    "one row": pair(V, 2, (1, 30)),
    "no steps": pair(V + 2, V, (10, 10), steps=False),
    "no epilogue": pair(V, V + 5, (10, 6), residual=False),
    "1x1 before": pair(V, V, (7, 7), 1),
    "3x3 behind": with_window(pair(V + 1, 2 * V, (9, 11)), 3, 1, 1),
    "3x3 stride 2 behind": with_window(pair(V, V, (10, 11), stride=2), 3, 2, 1),
}


def test_matches_numpy() -> None:
    made = [case(w, i, missing=np.nan) for i, w in enumerate(CASES.values())]
    results = run_all([c for c, _ in made])
    for name, (_, want), got in zip(CASES, made, results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("chunk, pieces, tile", [(1, 1, 1), (4, 2, 5), (9, 3, 7)])
def test_every_parameter_gives_the_same(chunk: int, pieces: int, tile: int) -> None:
    params = {"chunk": chunk, "pieces": pieces, "tile": tile, "blocks": 1}
    made, want = case(pair(V + 1, 3 * V, (9, 11)), 0, params=params)
    np.testing.assert_allclose(run_all([made])[0], want, rtol=1e-4, atol=1e-4)


def test_threads_make_the_same_bits() -> None:
    same_on_any_threads([case(pair(4 * V, 4 * V, (28, 28)), 0)[0]])


@pytest.mark.parametrize("name", TARGETS)
def test_other_targets(name: str) -> None:
    target = TARGETS[name]
    v = target.lanes
    text = assembly("spatial_pack", pair(2 * v, 2 * v, (14, 14)), target, (v, v))
    assert ("vfmadd" if name == "avx512" else "fmla") in text


def test_costs_the_arithmetic_of_both(steady: None) -> None:
    spatial_pack, depthwise = algorithms()["spatial_pack"], algorithms()["depthwise"]

    def seconds(algorithm: Any, w: ConvWorkload, target: CpuTarget) -> float:
        return algorithm.cost(w, algorithm.default(w, target), target)

    w = pair(256, 256, (28, 28))
    alone = seconds(spatial_pack, replace(w, producer=None), NEON)
    together = seconds(spatial_pack, w, NEON)
    assert alone < together < alone + seconds(depthwise, w.producer, NEON)
    # Each of two pieces computes the same input.
    params = {**spatial_pack.default(w, NEON), "pieces": 1}
    assert spatial_pack.cost(w, params, NEON) < spatial_pack.cost(w, {**params, "pieces": 2}, NEON)


def test_bytes_are_without_what_lies_between() -> None:
    w = pair(8, 16, (5, 6), residual=False, steps=False)
    assert w.bytes == 4 * (8 * 30 + 16 * 30 + 8 * 16 + 8 * 9)
    assert w.flops == 2 * 30 * 8 * (9 + 16)


def test_only_spatial_pack_takes_a_depthwise_producer() -> None:
    w = CASES["whole blocks"]
    able = {n for n, a in algorithms(w).items() if a.supports(w, HOST)}
    assert able == {"spatial_pack"}
    assert "winograd_4x4" in algorithms(replace(w, producer=None))
