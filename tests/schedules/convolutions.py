"""The hard cases on which every convolution algorithm is tested, and the checks they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tests.schedules import oracles
from tests.schedules.kernels import HOST, TARGETS, Case, assembly, fma_lines, run
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload

TOLERANCE = 2e-6  # of the largest output

CASES = {
    "3x3": conv_workload(16, (10, 10), 16, 3, 1, 1),
    "7x7 stride 2": conv_workload(3, (17, 15), 24, 7, 2, 3),
    "5x5 odd channels": conv_workload(11, (9, 9), 13, 5, 1, 2),
    "1x1": conv_workload(20, (9, 9), 24, 1),
    "1x1 stride 2": conv_workload(16, (9, 14), 17, 1, 2),
    "dilation": conv_workload(8, (11, 11), 8, 3, 1, 2, dilation=2),
    "batch 2": conv_workload(8, (5, 8), 9, 3, 1, 1, batch=2),
    "1d": conv_workload(8, (20,), 12, 3, 2, 1),
    "3d": conv_workload(4, (4, 5, 6), 8, 3, 1, 1),
    "tiny map": conv_workload(5, (2, 2), 7, 2),
    "uneven padding": replace(conv_workload(8, (8, 8), 8, 3, 2), pad_after=(1, 1)),
    "padding past the kernel": conv_workload(3, (4, 5), 6, 2, 2, 3),
}
GROUPED = {
    "groups of 8": conv_workload(32, (9, 9), 32, 3, 1, 1, groups=4),
    "groups of 3 and 5": conv_workload(9, (9, 9), 15, 3, 2, 1, groups=3),
    "depthwise": conv_workload(13, (9, 17), 13, 3, 1, 1, groups=13),
    "depth multiplier": conv_workload(6, (12, 8), 18, 3, 2, 1, groups=6, batch=2),
}


def case(
    name: str, w: ConvWorkload, layout: tuple[int, int] = (0, 0), **params: object
) -> tuple[Case, np.ndarray]:
    """A convolution of random numbers and its result.

    A kernel that reads the lanes past the last input channel gets NaN.
    """
    data = oracles.random(w.in_shape, 1)
    weight = oracles.random((w.out_channels, w.in_channels // w.groups, *w.kernel), 2)
    operands = oracles.operands_of(w)
    expected = oracles.finished(oracles.conv(w, data, weight), w, operands)
    made = Case(name, w, [data], [weight], operands, layout, params=params, missing=np.nan)
    return made, expected


def assert_matches_numpy(
    name: str,
    workloads: Mapping[str, ConvWorkload],
    layouts: Sequence[tuple[int, int]] = ((0, 0),),
    **params: object,
) -> None:
    """Every workload in every layout, with a bias, a residual and a relu in its epilogue."""
    cases = {
        (key, layout): case(name, oracles.with_residual(w), layout, **params)
        for key, w in workloads.items()
        for layout in layouts
    }
    oracles.agree(cases, TOLERANCE)


def assert_channels_around_the_vector(name: str, layout: tuple[int, int]) -> None:
    """Output channels that fill one or two vectors, and one fewer or one more."""
    cases = {
        outputs: case(name, conv_workload(5, (6, 7), outputs, 3, 1, 1), layout)
        for outputs in (7, 8, 9, 16, 17)
    }
    oracles.agree(cases, TOLERANCE)


def assert_rows_around_the_vector(name: str) -> None:
    """Rows that fill one or two vectors, and one column fewer or one more."""
    cases = {
        width: case(name, conv_workload(4, (3, width), 6, 3, 1, 1, groups=2))
        for width in (7, 8, 9, 15, 16, 17)
    }
    oracles.agree(cases, TOLERANCE)


def assert_refuses_float16(name: str) -> None:
    """The refusal names the dtype, and the one that is taken."""
    reason = algorithms()[name].supports(replace(CASES["3x3"], dtype="float16"), HOST).reason
    assert reason == "dtype float16; only float32"


def assert_stages_padded_input(name: str) -> None:
    """Padded input can't be read in place."""
    algorithm, w = algorithms()[name], CASES["3x3"]
    problem = algorithm.check(w, {**algorithm.default(w, HOST), "stage": False}, HOST)
    assert problem == f"{name}.stage = False is not one of [True]"


def assert_special_values_stay(name: str, layout: tuple[int, int] = (0, 0)) -> None:
    """NaN and infinities reach the outputs whose window holds them, and no others.

    The infinities meet positive weights only, so that each stays one. They stand at the borders
    and in the last channel: a kernel that reads beyond either, even under a weight of zero, shows.
    """
    w = conv_workload(5, (6, 9), 2 * HOST.lanes, 3, 1, 1)
    data = oracles.random(w.in_shape, 1)
    weight = np.abs(oracles.random((w.out_channels, 5, 3, 3), 2))
    data[0, 0, 0, 0], data[0, 1, 3, 8], data[0, 4, 5, 2] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = oracles.conv(w, data, weight)
    assert np.isnan(expected).any()
    assert np.isposinf(expected).any()
    assert np.isneginf(expected).any()
    actual = run(name, w, data=[data], weights=[weight], layout=layout, missing=np.nan)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def assert_uses_vectors(name: str, target: str, layout: tuple[int, int] = (0, 0)) -> None:
    """The multiply-adds of another target are on its widest vectors."""
    w = conv_workload(16, (32, 32), 32, 3, 1, 1)
    lines = fma_lines(assembly(name, w, TARGETS[target], layout))
    assert any("zmm" in line if target == "avx512" else ".4s" in line for line in lines)
