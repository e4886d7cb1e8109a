"""`conv_transpose` against the scatter definition in NumPy, float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvTransposeWorkload

TOLERANCE = 2e-6  # of the largest output


def workload(
    channels: int,
    spatial: tuple[int, ...],
    outputs: int,
    kernel: int,
    stride: int = 1,
    pad: int = 0,
    extra: int = 0,
    *,
    groups: int = 1,
    dilation: int = 1,
    batch: int = 1,
) -> ConvTransposeWorkload:
    dims = len(spatial)
    return ConvTransposeWorkload(
        batch, channels, spatial, outputs, (kernel,) * dims, (stride,) * dims, (pad,) * dims,
        (pad,) * dims, (dilation,) * dims, (extra,) * dims, groups,
    )  # fmt: skip


CASES = {
    "2x2 stride 2": workload(4, (5, 5), 6, 2, 2),
    "3x3 stride 2, output padding": workload(9, (7, 9), 7, 3, 2, 1, 1),
    "4x4 stride 2, groups": workload(6, (4, 8), 8, 4, 2, 1, groups=2),
    "stride 1": workload(5, (6, 6), 7, 3, 1, 1),
    "outputs that no tap reaches": workload(4, (4, 4), 6, 2, 3, 0, 2),
    "1x1 stride 2": workload(2, (3, 3), 3, 1, 2),
    "batch 2": workload(4, (6, 5), 4, 3, 2, 1, 1, groups=2, batch=2),
    "dilation": workload(4, (6, 6), 6, 3, 1, 0, dilation=2),
    "dilation and stride": workload(3, (4, 5), 4, 3, 2, 1, 0, dilation=2),
    "depthwise": workload(8, (6, 6), 8, 5, 2, 2, 1, groups=8),
    "uneven padding": replace(workload(4, (1, 9), 3, 5, 4, 1, 1), pad_after=(2, 2)),
    "1d": workload(4, (9,), 6, 4, 2, 1),
    "3d": workload(3, (2, 3, 4), 4, 3, 2, 1, 1),
    "single position": workload(4, (1, 1), 9, 1),
}


def case(w: ConvTransposeWorkload, **params: object) -> tuple[Case, np.ndarray]:
    data = oracles.random(w.in_shape, 1)
    weight = oracles.random((w.in_channels, w.out_channels // w.groups, *w.kernel), 2)
    operands = oracles.operands_of(w)
    expected = oracles.finished(oracles.conv_transpose(w, data, weight), w, operands)
    return Case("conv_transpose", w, [data], [weight], operands, params=params), expected


def test_against_the_scatter_definition() -> None:
    oracles.agree({key: case(oracles.with_residual(w)) for key, w in CASES.items()}, TOLERANCE)


def test_tasks_of_phases_of_different_length() -> None:
    w = workload(2, (4, 4), 3, 2, 3, 0, 2)
    assert w.out_spatial == (13, 13)  # phases of 5, 4 and 4 rows
    oracles.agree({chunk: case(w, chunk=chunk, high=1) for chunk in (1, 2, 3)}, TOLERANCE)


def test_rows_around_the_vector() -> None:
    widths = (7, 8, 9, 17)
    cases = {width: case(workload(3, (2, width), 5, 4, 2, 1)) for width in widths}
    oracles.agree(cases, TOLERANCE)


def test_refusals_and_illegal_parameters() -> None:
    algorithm, w = algorithms()["conv_transpose"], CASES["stride 1"]
    assert "float16" in algorithm.supports(replace(w, dtype="float16"), HOST).reason
    params = {**algorithm.default(w, HOST), "chunk": 7}
    assert algorithm.check(w, params, HOST).startswith("conv_transpose.chunk = 7 is not one of")


@pytest.mark.parametrize("target", [AVX512, NEON], ids=["avx512", "neon"])
def test_other_targets_use_their_vectors(target: object) -> None:
    text = assembly("conv_transpose", workload(16, (32, 32), 16, 4, 2, 1), target)
    lines = [line for line in text.splitlines() if "vfmadd" in line or "fmla" in line]
    assert any("zmm" in line if target is AVX512 else ".4s" in line for line in lines)
