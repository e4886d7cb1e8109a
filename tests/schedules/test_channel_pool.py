"""Averages over neighbouring channels against numpy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.channel_pool import ChannelPoolWorkload
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.target import resolve

V = HOST.lanes
LAYOUTS = ((V, V), (0, 0))
AVX2 = resolve("llvm -mcpu=haswell")
SQUARE = Epilogue((Step("multiply", (("value", 0), ("value", 0))),), (), 1)
# Shape, channels of a window, and those of them before the own one.
CASES = {
    "whole blocks": ((2, 2 * V, 5, 7), 5, 2),
    "one channel more": ((1, 2 * V + 1, 3, 11), 3, 1),
    "one channel less": ((2, V - 1, 4, 9), 5, 2),
    "even window": ((1, V + 3, 6, 6), 4, 1),
    "all before": ((1, V + 2, 3, 5), 4, 3),
    "none before": ((1, 2 * V, 3, 5), 4, 0),
    "window of one": ((1, V + 1, 3, 5), 1, 0),
    "wider than the channels": ((2, 3, 5, 5), 9, 4),
    "wider than two blocks": ((1, V + 1, 2, 9), 2 * V + 3, V + 1),
    "one channel": ((1, 1, 4, 4), 5, 2),
    "one position": ((3, V, 1, 1), 5, 2),
    "several tasks": ((1, V, 13, 29), 5, 2),
    "1d": ((2, V + 1, 19), 3, 1),
    "3d": ((1, V, 3, 4, 5), 5, 2),
}
# Alpha, beta, bias of AlexNet (and ZFNet), of GoogLeNet, and an odd power of no offset.
LRN = ((1e-4, 0.75, 1.0), (0.0001, 0.75, 1.0), (5e-4, 0.75, 2.0), (0.5, 0.5, 0.0), (1.0, 1.0, 1.0))


def average(x: np.ndarray, size: int, before: int) -> np.ndarray:
    x = x.astype("float64")
    out = np.zeros_like(x)
    for c in range(x.shape[1]):
        out[:, c] = x[:, max(0, c - before) : max(0, c - before + size)].sum(axis=1) / size
    return out


def normalised(shape: tuple[int, ...], alpha: float, beta: float, bias: float) -> Epilogue:
    steps = (
        Step("multiply", (("value", 0), ("const", alpha))),
        Step("add", (("value", 1), ("const", bias))),
        Step("power", (("value", 2), ("const", beta))),
        Step("divide", (("operand", 0), ("value", 3))),
    )
    return Epilogue(steps, (Operand(shape, "float32"),))


def data(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
def test_matches_numpy(layout: tuple[int, int]) -> None:
    cases = [
        Case("channel_pool", ChannelPoolWorkload(shape, size, before, prologue=prologue),
             data=[data(shape)], layout=layout, missing=3.0)
        for shape, size, before in CASES.values()
        for prologue in (None, SQUARE)
    ]  # fmt: skip
    for case, got in zip(cases, run_all(cases), strict=True):
        w, x = case.workload, case.data[0]
        want = average(x if w.prologue is None else x.astype("float64") ** 2, w.size, w.before)
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6, err_msg=str(w))


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
def test_local_response_normalisation(layout: tuple[int, int]) -> None:
    """Lanes past the last channel stay finite, also where the quotient isn't at zeros."""
    cases, wanted = [], []
    for numbers in LRN:
        for shape, size, before in (((2, V + 3, 5, 7), 5, 2), ((1, 2 * V, 6, 3), 3, 1)):
            x, (alpha, beta, bias) = data(shape), numbers
            w = ChannelPoolWorkload(
                shape, size, before, epilogue=normalised(shape, *numbers), prologue=SQUARE
            )
            cases.append(Case("channel_pool", w, data=[x], operands=[x], layout=layout))
            mean = average(x.astype("float64") ** 2, size, before)
            wanted.append(x / (bias + alpha * mean) ** beta)
    for case, got, want in zip(cases, run_all(cases), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-6, err_msg=str(case.workload))


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
def test_operands_of_other_shapes(layout: tuple[int, int]) -> None:
    shape = (2, V + 2, 4, 6)
    shapes = ((1, V + 2, 1, 1), (2, 1, 4, 6), (1, 1, 1, 6), (1, V + 2, 4, 1))
    steps = tuple(
        Step("add" if i % 2 else "multiply", (("value", i), ("operand", i)))
        for i in range(len(shapes))
    )
    epilogue = Epilogue(steps, tuple(Operand(s, "float32") for s in shapes))
    w = ChannelPoolWorkload(shape, 3, 1, epilogue=epilogue)
    x, (a, b, c, d) = data(shape), (data(s) for s in shapes)
    got = run("channel_pool", w, data=[x], operands=[a, b, c, d], layout=layout)
    want = (average(x, 3, 1) * a + b) * c + d
    np.testing.assert_allclose(got, want, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
def test_every_parameter_gives_the_same(layout: tuple[int, int]) -> None:
    shape = (2, V + 1, 9, 31)
    w = ChannelPoolWorkload(shape, 5, 2)
    space = algorithms()["channel_pool"].space(w, HOST)
    cases = [
        Case("channel_pool", w, data=[data(shape)], layout=layout,
             params={"positions": count, "parallel": parallel})
        for count in space["positions"]
        for parallel in space["parallel"]
    ]  # fmt: skip
    want = average(data(shape), 5, 2)
    for case, got in zip(cases, run_all(cases), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6, err_msg=str(case.params))


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
def test_nan_and_infinity_stay_in_their_windows(layout: tuple[int, int]) -> None:
    shape = (1, V + 4, 3, 5)
    x = data(shape)
    x[0, 3, 1, 2], x[0, V, 2, 4] = np.nan, np.inf
    got = run("channel_pool", ChannelPoolWorkload(shape, 5, 2), data=[x], layout=layout)
    want = average(x, 5, 2)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
    assert np.isnan(got).sum() == np.isinf(got).sum() == 5


def test_vector_registers_of_other_targets() -> None:
    shape = (1, 32, 14, 14)
    epilogue = normalised(shape, 1e-4, 0.75, 1.0)
    w = ChannelPoolWorkload(shape, 5, 2, epilogue=epilogue, prologue=SQUARE)
    for target, roots in ((AVX512, "vsqrtps\t%zmm"), (AVX2, "vsqrtps\t%ymm"), (NEON, "fsqrt\tv")):
        for block in (0, target.lanes):
            text = assembly("channel_pool", w, target, (block, block))
            assert roots in text
            assert "gather" not in text


def test_costs_what_it_computes() -> None:
    algorithm, w = algorithms()["channel_pool"], ChannelPoolWorkload((1, 64, 56, 56), 5, 2)
    assert w.flops == 5 * 64 * 56 * 56
    assert w.bytes == 2 * 4 * 64 * 56 * 56
    wider = replace(w, size=500)
    params = algorithm.default(w, HOST)
    assert algorithm.cost(wider, params, HOST) > algorithm.cost(w, params, HOST)


def test_the_copy_is_half_of_the_cache_at_most() -> None:
    default = algorithms()["channel_pool"].default
    for channels in (8, 96, 256, 480):
        w = ChannelPoolWorkload((1, channels, 56, 56), 5, 2)
        assert 8 * default(w, HOST)["positions"] * channels <= HOST.l1d


def test_refusals() -> None:
    algorithm, w = algorithms()["channel_pool"], ChannelPoolWorkload((1, 8, 4, 4), 5, 2)
    assert algorithm.layouts(w, HOST) == LAYOUTS
    assert "dtype float16" in algorithm.supports(replace(w, dtype="float16"), HOST).reason
    assert "rank 2" in algorithm.supports(replace(w, shape=(1, 8)), HOST).reason
    assert "no elements" in algorithm.supports(replace(w, shape=(0, 8, 4, 4)), HOST).reason
    assert "5 channels before of 5" in algorithm.supports(replace(w, before=5), HOST).reason
    scaled = Epilogue(
        (Step("multiply", (("value", 0), ("operand", 0))),), (Operand((1, 8, 1, 1), "float32"),)
    )
    refused = algorithm.supports(replace(w, prologue=scaled), HOST)
    assert "more than the input" in refused.reason
    params = {"positions": 7, "parallel": False}
    assert "channel_pool.positions = 7" in algorithm.check(w, params, HOST)
