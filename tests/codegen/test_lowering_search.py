"""Searched tilings: never slower, the same bits, as fast as the best of all where that is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accelerator_networks import NetworkBuilder
from tests.codegen.lowering_networks import Builder, run_program
from tests.codegen.test_lowering_tilings import all_tilings, one_conv, with_tiling
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import (
    NestPlan,
    SearchOptions,
    compile_network,
    emit_plan,
    evolve,
    make_plan,
    plan_search,
    planned_cycles,
)
from tvm_ext.codegen.network import Network
from tvm_ext.errors import OptionError

BUS_BOUND = Accelerator(pes=256, dma_bytes_per_cycle=4, sram_bytes=16 * 1024)


def network_of_all_kinds() -> Network:
    builder = Builder(np.random.default_rng(3))
    x = builder.input(1, 20, 15, 13)
    x = builder.conv(x, 40, (1, 1))
    x = builder.conv(x, 40, (3, 3), pads=(1, 1, 1, 1), depthwise=True)
    y = builder.conv(x, 30, (3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    return builder.network(x, builder.matmul(builder.reshape(y, 1, 30 * 8 * 7), 33))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"parallel": "input"},
        {"depthwise": "software"},
        {"double_buffering": False},
        {"pixel_parallel": 4, "dma_bytes_per_cycle": 2},
    ],
)
def test_same_bits_and_never_slower(options: dict[str, object]) -> None:
    network = network_of_all_kinds()
    hardware = Accelerator(**{"pes": 32, "sram_bytes": 6 * 1024, **options})  # type: ignore[arg-type]
    auto = make_plan(network, hardware)
    plan = plan_search(network, hardware, SearchOptions(trials=12))
    assert planned_cycles(plan) <= planned_cycles(auto)
    result = run_program(network, emit_plan(plan), hardware)
    assert result.cycles == planned_cycles(plan)


def test_faster_where_auto_does_not_look() -> None:
    """One buffer for results leaves room for longer sums, which load the input less often."""
    builder = NetworkBuilder("one", (1, 128, 7, 7))
    network = builder.network(builder.conv(builder.input, 128, 3))
    auto = make_plan(network, BUS_BOUND)
    plan = plan_search(network, BUS_BOUND, SearchOptions(trials=40))
    assert planned_cycles(plan) < 0.94 * planned_cycles(auto)
    result = run_program(network, emit_plan(plan), BUS_BOUND)
    assert result.cycles == planned_cycles(plan)


def test_near_the_best_of_all_tilings() -> None:
    """Against every tiling of sizes, loop orders and buffers, timed one by one."""
    hardware = Accelerator(pes=8, sram_bytes=700, dma_bytes_per_cycle=2, dma_latency_cycles=8)
    network = one_conv(0, 6, 10)
    auto = make_plan(network, hardware)
    every = [with_tiling(auto, tiling) for tiling in all_tilings(auto, 40)]
    best = min(item.cycles for plan in every if plan for item in plan.items)  # type: ignore[union-attr]
    plan = plan_search(network, hardware)
    assert compile_network(network, hardware, mapping="search") == emit_plan(plan)
    (found,) = plan.items
    (first,) = auto.items
    assert isinstance(found, NestPlan) and isinstance(first, NestPlan)
    assert found.cycles <= first.cycles
    assert found.cycles <= 1.02 * best


def test_budget_and_determinism(monkeypatch: pytest.MonkeyPatch) -> None:
    network = one_conv(1, 24, 40)
    hardware = Accelerator(pes=16, sram_bytes=4096, dma_bytes_per_cycle=2)
    timed = []
    whole = evolve.nest_cycles

    def counted(*arguments: object) -> int:
        timed.append(arguments)
        return whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(evolve, "nest_cycles", counted)
    options = SearchOptions(trials=10, round_size=4, seed=7)
    plans = [plan_search(network, hardware, options) for _ in range(2)]
    assert 2 <= len(timed) <= 20
    assert plans[0].items == plans[1].items


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="trials=0; allowed: a whole number from 1 on"):
        SearchOptions(trials=0)
    with pytest.raises(OptionError, match="seed=-1; allowed: a whole number from 0 on"):
        SearchOptions(seed=-1)
    with pytest.raises(OptionError, match=r"plans=1\.5"):
        SearchOptions(plans=1.5)  # type: ignore[arg-type]
