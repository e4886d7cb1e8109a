"""Every convolution algorithm on the same hard cases, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.workload import ConvWorkload

TOLERANCE = 2e-6  # of the largest output
LANES = HOST.lanes

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
}
GROUPED = {
    "groups of 8": conv_workload(32, (9, 9), 32, 3, 1, 1, groups=4),
    "groups of 3 and 5": conv_workload(9, (9, 9), 15, 3, 2, 1, groups=3),
    "depthwise": conv_workload(13, (9, 17), 13, 3, 1, 1, groups=13),
    "depth multiplier": conv_workload(6, (12, 8), 18, 3, 2, 1, groups=6, batch=2),
}
ALL_GROUPS = {**CASES, **GROUPED}


def case(
    name: str, w: ConvWorkload, layout: tuple[int, int] = (0, 0), **params: object
) -> tuple[Case, np.ndarray]:
    data = oracles.random(w.in_shape, 1)
    weight = oracles.random((w.out_channels, w.in_channels // w.groups, *w.kernel), 2)
    operands = oracles.operands_of(w)
    expected = oracles.finished(oracles.conv(w, data, weight), w, operands)
    return Case(name, w, [data], [weight], operands, layout, params=params), expected


def test_conv_direct() -> None:
    cases = {key: case("conv_direct", oracles.with_residual(w)) for key, w in ALL_GROUPS.items()}
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("over", ["channels", "columns"])
def test_gspc(over: str) -> None:
    cases = {
        key: case("gspc", oracles.with_residual(w), over=over, width=1)
        for key, w in ALL_GROUPS.items()
    }
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("name", ["conv_gemm", "spatial_pack"])
def test_blocked_output(name: str) -> None:
    cases = {
        (key, block): case(name, oracles.with_residual(w), (block, LANES))
        for key, w in CASES.items()
        for block in (0, LANES)
    }
    oracles.agree(cases, TOLERANCE)


def test_spatial_pack_groups() -> None:
    w = oracles.with_residual(GROUPED["groups of 8"])
    oracles.agree({"8 a group": case("spatial_pack", w, (LANES, LANES))}, TOLERANCE)


@pytest.mark.parametrize("name", ["conv_direct", "gspc"])
def test_rows_around_the_vector(name: str) -> None:
    cases = {
        width: case(name, conv_workload(4, (3, width), 6, 3, 1, 1, groups=2))
        for width in (7, 8, 9, 15, 16, 17)
    }
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("name", ["conv_gemm", "spatial_pack"])
def test_channels_around_the_vector(name: str) -> None:
    cases = {
        outputs: case(name, conv_workload(5, (6, 7), outputs, 3, 1, 1), (0, LANES))
        for outputs in (7, 8, 9, 16, 17)
    }
    oracles.agree(cases, TOLERANCE)


def test_parameters_change_the_loops_only() -> None:
    w = conv_workload(12, (10, 10), 12, 3, 1, 1)
    valid = conv_workload(3, (9, 19), 5, 3)
    cases = {
        "direct": case("conv_direct", w, chunk=3, pieces=3, channels=5, high=2),
        "in place": case("conv_direct", valid, stage=False),
        "staged": case("conv_direct", valid, stage=True),
        "columns": case("gspc", w, chunk=3, t_i=3, t_o=6, unroll_kw=False),
        "channels": case("gspc", w, chunk=3, t_i=2, t_o=12, over="channels", width=3),
        "gemm": case("conv_gemm", w, (LANES, LANES), chunk=30, pieces=2, tile=4, blocks=1),
        "pack": case("spatial_pack", w, (0, LANES), chunk=3, pieces=2, tile=4, blocks=1),
    }
    oracles.agree(cases, TOLERANCE)


def test_gspc_weights_have_the_seven_dimensions_of_algorithm_3() -> None:
    w, gspc = conv_workload(12, (8, 8), 24, 3, 1, 1, groups=2), algorithms()["gspc"]
    params = {**gspc.default(w, HOST), "t_i": 3, "t_o": 4}
    weight = oracles.random((24, 6, 3, 3), 1)
    packed = gspc.pack(w, params, HOST, [weight])[0]
    assert packed.shape == (2, 12 // 4, 6 // 3, 3, 3, 3, 4)
    # W'[j][k][c][h][w][ci][co] = W[j K + k T_O + co][c T_I + ci][h][w]
    assert packed[1, 2, 1, 0, 2, 2, 3] == weight[12 + 2 * 4 + 3, 1 * 3 + 2, 0, 2]


def test_gspc_tiles_obey_equation_5_1() -> None:
    w, gspc = conv_workload(12, (8, 8), 24, 3, 1, 1, groups=2), algorithms()["gspc"]
    params = gspc.default(w, HOST)
    assert gspc.check(w, {**params, "t_o": 24}, HOST).startswith("gspc.t_o = 24 is not one of")
    assert gspc.check(w, {**params, "t_i": 4}, HOST).startswith("gspc.t_i = 4 is not one of")


def test_refusals_name_the_property() -> None:
    table, w = algorithms(), GROUPED["groups of 3 and 5"]
    assert table["conv_gemm"].supports(w, HOST).reason == "3 groups; only 1"
    assert "5 output channels a group" in table["spatial_pack"].supports(w, HOST).reason
    for name in ("conv_direct", "gspc", "conv_gemm", "spatial_pack"):
        assert "float16" in table[name].supports(replace(w, dtype="float16"), HOST).reason


@pytest.mark.parametrize("name", ["conv_direct", "gspc", "conv_gemm", "spatial_pack"])
@pytest.mark.parametrize("target", [AVX512, NEON], ids=["avx512", "neon"])
def test_other_targets_use_their_vectors(name: str, target: object) -> None:
    w = conv_workload(16, (32, 32), 32, 3, 1, 1)
    block = target.lanes if name in ("conv_gemm", "spatial_pack") else 0
    text = assembly(name, w, target, (block, block))
    lines = [line for line in text.splitlines() if "vfmadd" in line or "fmla" in line]
    assert any("zmm" in line if target is AVX512 else ".4s" in line for line in lines)
