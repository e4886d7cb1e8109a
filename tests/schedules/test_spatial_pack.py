"""`spatial_pack` against NumPy in float64, and the panels of its weights."""

from __future__ import annotations

import re

import pytest

from tests.schedules import oracles, pooled_convolutions
from tests.schedules.convolutions import (
    CASES,
    GROUPED,
    TOLERANCE,
    assert_channels_around_the_vector,
    assert_matches_numpy,
    assert_refuses_float16,
    assert_special_values_stay,
    assert_stages_padded_input,
    assert_uses_vectors,
    case,
)
from tests.schedules.kernels import HOST, TARGETS, assembly
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.target import resolve

V = HOST.lanes


def test_matches_numpy() -> None:
    assert_matches_numpy("spatial_pack", CASES, layouts=((0, V), (V, V)))


def test_groups() -> None:
    cases = {
        "full vectors": case(
            "spatial_pack",
            oracles.with_residual(conv_workload(4 * V, (9, 9), 4 * V, 3, 1, 1, groups=4)), (V, V),
        ),
        # A group's input starts inside a block.
        "3 inputs a group": case("spatial_pack", conv_workload(6, (5, 6), 2 * V, 3, 1, 1, groups=2),
                                 (V, V)),
        "1x1, strided": case("spatial_pack", conv_workload(8, (5, 6), 2 * V, 1, 2, groups=2),
                             (V, V)),
    }  # fmt: skip
    oracles.agree(cases, TOLERANCE)


def test_channels_around_the_vector() -> None:
    assert_channels_around_the_vector("spatial_pack", (0, V))


def test_parameters_change_the_loops_only() -> None:
    w, flat = conv_workload(12, (10, 10), V + 4, 3, 1, 1), conv_workload(9, (7, 7), 5 * V, 1)
    cases = {
        "uneven chunks": case("spatial_pack", w, (0, V), chunk=3, pieces=2, tile=4, blocks=1),
        "one chunk": case("spatial_pack", w, (V, V), chunk=10, tile=1, blocks=2),
        "in place": case("spatial_pack", flat, (V, V), chunk=20, pieces=2, blocks=2, stage=False),
        "staged": case("spatial_pack", flat, (V, V), chunk=20, pieces=3, blocks=1, stage=True),
    }
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("block", [0, V])
def test_special_values_stay_in_their_windows(block: int) -> None:
    assert_special_values_stay("spatial_pack", (block, V))


def test_weights_are_cut_in_panels_of_output_channels() -> None:
    w, algorithm = conv_workload(2 * V, (5, 5), 3 * V, 3), algorithms()["spatial_pack"]
    weight = oracles.random((3 * V, 2 * V, 3, 3), 1)
    params = {**algorithm.default(w, HOST), "blocks": 2}
    (panels,) = algorithm.pack(w, params, HOST, [weight])
    # Panel, block of input channels, taps, input channel, vector, lane.
    assert panels.shape == (2, 2, 3, 3, V, 2, V)
    assert panels[0, 1, 2, 0, 3, 1, 2] == weight[V + 2, V + 3, 2, 0]
    # Two vectors don't divide three: the second panel overlaps the first.
    assert panels[1, 0, 1, 2, 0, 1, 4] == weight[2 * V + 4, 0, 1, 2]
    assert panels[1, 0, 1, 2, 0, 0, 4] == weight[V + 4, 0, 1, 2]


def test_refusals_and_illegal_parameters() -> None:
    reason = algorithms()["spatial_pack"].supports(GROUPED["groups of 3 and 5"], HOST).reason
    assert reason == f"5 output channels a group don't fill {V} lanes"
    assert_refuses_float16("spatial_pack")
    assert_stages_padded_input("spatial_pack")


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_use_their_vectors(target: str) -> None:
    block = TARGETS[target].lanes
    assert_uses_vectors("spatial_pack", target, (block, block))


def test_pools() -> None:
    w = conv_workload(5, (11, 13), 17, 3, 1, 1)
    pooled_convolutions.assert_matches_numpy("spatial_pack", w, (V, V), TOLERANCE)


@pytest.mark.parametrize(
    "w",
    [
        conv_workload(3, (22, 26), 8, 7, 2, 3),
        conv_workload(2 * V, (9, 9), 2 * V, 3, 1, 1, groups=2, batch=2),
        conv_workload(6, (9, 11), 9, 1),
        conv_workload(6, (18, 21), 9, 1, 2),
    ],
    ids=["7x7 stride 2", "groups", "1x1", "1x1 stride 2"],
)
def test_pools_behind_other_convolutions(w: ConvWorkload) -> None:
    block = 0 if w.in_channels == 3 else V
    few = pooled_convolutions.FEW
    pooled_convolutions.assert_matches_numpy("spatial_pack", w, (block, V), TOLERANCE, few)


@pytest.mark.parametrize(
    "params",
    [{"chunk": 1, "pieces": 3, "blocks": 1}, {"chunk": 2, "blocks": 2, "tile": 4}],
    ids=["one row", "two rows"],
)
def test_pools_in_every_cut_of_the_rows(params: dict[str, int]) -> None:
    w, few = conv_workload(5, (11, 13), 3 * V, 3, 1, 1), pooled_convolutions.FEW
    pooled_convolutions.assert_matches_numpy("spatial_pack", w, (0, V), TOLERANCE, few, **params)


def test_pools_special_values_on_any_threads() -> None:
    pooled_convolutions.assert_special_values_are_pooled("spatial_pack", (V, V))
    pooled_convolutions.assert_threads_change_no_bit("spatial_pack", (V, V), chunk=2, pieces=2)
    pooled_convolutions.assert_refuses_other_pools("spatial_pack", "2 and 3")


def test_rows_that_two_tasks_need_cost_twice() -> None:
    w = pooled_convolutions.with_pool(conv_workload(64, (56, 56), 64, 3, 1, 1), "max", 3, 2, 1)
    algorithm = algorithms()["spatial_pack"]
    params = {**algorithm.default(w, HOST), "pieces": 1}
    one, all_rows = (algorithm.cost(w, {**params, "chunk": n}, HOST) for n in (1, 14))
    assert one > 1.3 * all_rows


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_pool_in_vectors(target: str) -> None:
    block = TARGETS[target].lanes
    pooled_convolutions.assert_uses_vectors("spatial_pack", target, (block, block))


def test_the_rows_of_a_pool_are_fetched_before_they_are_stored() -> None:
    w = conv_workload(3, (32, 32), 16, 3, 1, 1)
    pooled = pooled_convolutions.with_pool(w, "max", 2, 2)
    plain, fetching = (
        assembly("spatial_pack", x, TARGETS["avx512"], (0, 16), tile=8).count("prefetch")
        for x in (w, pooled)
    )
    assert fetching > plain


@pytest.mark.parametrize("mcpu", ["znver4", "sapphirerapids", "core-avx2"])
def test_the_tile_stays_in_registers(mcpu: str) -> None:
    cpu = resolve({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": mcpu})
    text = assembly(
        "spatial_pack", conv_workload(128, (28, 28), 512, 1), cpu, (cpu.lanes, cpu.lanes)
    )
    through_memory = re.findall(r"vmov[au]ps\s.*%rsp", text)
    assert text.count("vfmadd") > 100
    assert len(through_memory) < 80


def test_asks_for_the_lines_of_its_results_where_they_come_soon() -> None:
    def asked(channels: int) -> int:
        w = oracles.with_residual(conv_workload(channels, (28, 28), 64, 1))
        return assembly("spatial_pack", w, TARGETS["avx512"], (16, 16)).count("prefetcht0")

    # A tile's lines of the output and of the residual, shared out over the reduction.
    assert asked(32) >= 28
    assert asked(1024) == 0
