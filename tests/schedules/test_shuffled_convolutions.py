"""Convolutions that store their channels shuffled, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import TOLERANCE
from tests.schedules.kernels import HOST, TARGETS, Case, assembly, fma_lines
from tests.schedules.oracles import conv_workload
from tests.schedules.pooled_convolutions import with_pool
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload

NAMES = ("conv_direct", "gspc")
SHAPES = {
    "1x1": conv_workload(24, (7, 9), 48, 1),
    "3x3": conv_workload(6, (9, 11), 24, 3, 1, 1, groups=2),
}
CASES = {
    "whole rows of positions": replace(
        conv_workload(24, (32, 33), 24, 1, groups=3, batch=2), shuffle=3
    ),
    "stride 2": replace(conv_workload(12, (9, 13), 20, 3, 2, 1, groups=4, batch=2), shuffle=4),
    "other groups": replace(conv_workload(12, (5, 7), 30, 1, groups=2), shuffle=5),
    "one position": replace(conv_workload(12, (1, 1), 12, 1, groups=2), shuffle=2),
    "depthwise": replace(conv_workload(15, (8, 10), 15, 3, 1, 1, groups=15), shuffle=3),
    "1d": replace(conv_workload(8, (21,), 12, 3, 2, 1, groups=2), shuffle=2),
    "3d": replace(conv_workload(6, (4, 5, 6), 9, 3, 1, 1, groups=3, batch=2), shuffle=3),
}
WORKLOAD = CASES["stride 2"]


def shuffled(result: np.ndarray, groups: int) -> np.ndarray:
    """The channels in groups, transposed: the first of each group, the second of each, ..."""
    batch, channels, *spatial = result.shape
    cut = result.reshape(batch, groups, channels // groups, *spatial)
    return cut.swapaxes(1, 2).reshape(result.shape)


def case(name: str, w: ConvWorkload, **params: object) -> tuple[Case, np.ndarray]:
    """A convolution with a bias, a residual and a relu before the shuffle, and its result."""
    w = oracles.with_residual(w)
    data = oracles.random(w.in_shape, 1)
    weight = oracles.random((w.out_channels, w.in_channels // w.groups, *w.kernel), 2)
    operands = oracles.operands_of(w)
    expected = oracles.finished(oracles.conv(w, data, weight), w, operands)
    return Case(name, w, [data], [weight], operands, params=params), shuffled(expected, w.shuffle)


@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_groups(name: str) -> None:
    workloads = {
        (key, groups): replace(w, shuffle=groups)
        for key, w in SHAPES.items()
        for groups in (1, 2, 3, 4, 8)
    }
    oracles.agree({key: case(name, w) for key, w in workloads.items()}, TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_strides_batches_and_dimensions(name: str) -> None:
    oracles.agree({key: case(name, w) for key, w in CASES.items()}, TOLERANCE)


def test_parameters_change_the_loops_only() -> None:
    w = replace(conv_workload(12, (10, 10), 36, 3, 1, 1, groups=3), shuffle=3)
    cases = {
        "uneven chunks": case("conv_direct", w, chunk=3, pieces=3, channels=5, high=2),
        "a piece past the end": case("conv_direct", w, channels=5, pieces=2),
        "over channels": case("gspc", w, over="channels", t_o=6, high=1, width=3),
        "over columns": case("gspc", w, over="columns", t_o=4, high=2, width=1, chunk=3),
    }
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_use_their_vectors(name: str, target: str) -> None:
    w = replace(conv_workload(32, (28, 28), 32, 1, groups=2), shuffle=2)
    lines = fma_lines(assembly(name, w, TARGETS[target]))
    assert any("zmm" in line if target == "avx512" else ".4s" in line for line in lines)


def test_no_other_algorithm_takes_a_shuffle() -> None:
    assert set(algorithms(WORKLOAD)) == set(NAMES)
    assert len(algorithms(replace(WORKLOAD, shuffle=1))) > len(NAMES)


def test_no_kernel_computes_a_shuffled_producer() -> None:
    first = conv_workload(8, (6, 6), 8, 3, 1, 1, groups=8)
    pair = replace(conv_workload(8, (6, 6), 4, 1), producer=first)
    assert algorithms(pair)
    assert not algorithms(replace(pair, producer=replace(first, shuffle=2)))
    assert not algorithms(replace(pair, shuffle=2))


def test_a_pool_stage_is_refused() -> None:
    w, algorithm = with_pool(SHAPES["3x3"], "max", 2, 2), algorithms()["conv_direct"]
    assert algorithm.supports(w, HOST)
    reason = algorithm.supports(replace(w, shuffle=2), HOST).reason
    assert reason == "a pool stage of shuffled channels"


def test_a_shuffle_moves_and_costs_nothing_more() -> None:
    plain, algorithm = replace(WORKLOAD, shuffle=1), algorithms()["conv_direct"]
    params = algorithm.default(plain, HOST)
    assert WORKLOAD.out_shape == plain.out_shape
    assert (WORKLOAD.bytes, WORKLOAD.flops) == (plain.bytes, plain.flops)
    target = TARGETS["neon"]
    assert algorithm.cost(WORKLOAD, params, target) == algorithm.cost(plain, params, target)
