"""Random networks on random hardware: the simulated bytes are the reference's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.lowering_networks import Builder, random_network, run_network
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.lowering import NestPlan, planned_cycles
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.simulator import Result


def check_bounds(network: Network, hardware: Accelerator, result: Result) -> None:
    """No schedule does more products than there are PEs, or moves more than the bus takes."""
    moved = result.dma_read_bytes + result.dma_write_bytes
    assert result.macs == network.macs()
    assert result.cycles >= network.macs() / hardware.pes
    assert result.cycles >= moved / hardware.dma_bytes_per_cycle
    assert not result.leftover_tokens


def hardware_of(seed: int, parallel: str, sram_bytes: int) -> Accelerator:
    rng = np.random.default_rng(seed)
    return Accelerator(
        pes=int(rng.choice([4, 8, 16])), sram_bytes=sram_bytes, parallel=parallel,
        depthwise=str(rng.choice(["software", "hardware"])),
        pixel_parallel=int(rng.choice([1, 1, 2])), dma_bytes_per_cycle=int(rng.choice([4, 16])),
    )  # fmt: skip


@pytest.mark.parametrize("sram_bytes", [700, 2500, 100_000])
@pytest.mark.parametrize("parallel", ["output", "input"])
@pytest.mark.parametrize("seed", range(8))
def test_random_networks(seed: int, parallel: str, sram_bytes: int) -> None:
    network, hardware = random_network(seed), hardware_of(seed, parallel, sram_bytes)
    try:
        plan, result = run_network(network, hardware)
    except LoweringError as error:
        assert sram_bytes == 700
        assert "allowed: 700" in str(error)
        return
    check_bounds(network, hardware, result)
    assert planned_cycles(plan) == result.cycles


@pytest.mark.parametrize("seed", range(100, 110))
def test_random_networks_without_overlap(seed: int) -> None:
    from dataclasses import replace

    network, hardware = random_network(seed), hardware_of(seed, "output", 4000)
    serial = replace(hardware, double_buffering=False)
    plan, result = run_network(network, serial)
    check_bounds(network, serial, result)
    assert planned_cycles(plan) == result.cycles
    events = result.events
    moves = events.macs + events.memory_bytes > 0
    order = np.argsort(events.start[moves], kind="stable")
    starts, ends = events.start[moves][order], events.end[moves][order]
    assert (starts[1:] >= ends[:-1]).all()


@pytest.mark.parametrize("parallel", ["output", "input"])
@pytest.mark.parametrize("seed", range(200, 208))
def test_random_networks_as_baseline(seed: int, parallel: str) -> None:
    network, hardware = random_network(seed), hardware_of(seed, parallel, 100_000)
    plan, result = run_network(network, hardware, "baseline")
    check_bounds(network, hardware, result)
    assert planned_cycles(plan) == result.cycles
    kinds = result.cycles_by_kind()
    if network.macs():
        assert kinds["REQUANT"] > 0


def test_products_of_several_rows() -> None:
    builder = Builder(np.random.default_rng(0))
    x = builder.input(13, 37)
    network = builder.network(builder.matmul(builder.matmul(x, 29), 11))
    for sram_bytes in (400, 1000, 10_000):
        for parallel in ("output", "input"):
            hardware = Accelerator(pes=8, sram_bytes=sram_bytes, parallel=parallel)
            _, result = run_network(network, hardware)
            check_bounds(network, hardware, result)


def test_a_large_image_passes_through_small_memory_in_strips_of_columns() -> None:
    builder = Builder(np.random.default_rng(1))
    x = builder.input(1, 8, 6, 40)
    network = builder.network(builder.conv(x, 12, (3, 3), pads=(1, 1, 1, 1)))
    plan, _ = run_network(network, Accelerator(pes=4, sram_bytes=900))
    (item,) = plan.items
    assert isinstance(item, NestPlan)
    assert item.tiling.columns < 40


def test_sums_are_cut_along_input_channels() -> None:
    builder = Builder(np.random.default_rng(2))
    x = builder.input(1, 96, 4, 4)
    network = builder.network(builder.conv(x, 8, (3, 3), pads=(1, 1, 1, 1)))
    plan, _ = run_network(network, Accelerator(pes=8, sram_bytes=2000))
    (item,) = plan.items
    assert isinstance(item, NestPlan)
    assert item.tiling.depth < 96
    assert item.buffers.partial


def test_windows_in_the_padding_alone() -> None:
    """Padding wider than the window, so that whole tiles see no pixel."""
    builder = Builder(np.random.default_rng(3))
    x = builder.input(1, 3, 4, 4)
    network = builder.network(builder.conv(x, 5, (2, 2), pads=(5, 6, 7, 5)))
    for sram_bytes in (300, 100_000):
        run_network(network, Accelerator(pes=4, sram_bytes=sram_bytes))


def test_activations_stay_in_sram_where_they_fit() -> None:
    builder = Builder(np.random.default_rng(4))
    x = builder.input(1, 16, 8, 8)
    for _ in range(4):
        x = builder.conv(x, 16, (3, 3), pads=(1, 1, 1, 1))
    network = builder.network(x)
    _, roomy = run_network(network, Accelerator(pes=16, sram_bytes=16_384))
    weights = 4 * (16 * 16 * 9 + 16 * 8)
    assert roomy.dma_read_bytes == weights + 1024
    assert roomy.dma_write_bytes == 1024
    _, tight = run_network(network, Accelerator(pes=16, sram_bytes=2500))
    assert tight.dma_write_bytes > 1024


def test_overlap_hides_most_of_the_loads() -> None:
    builder = Builder(np.random.default_rng(5))
    x = builder.input(1, 64, 12, 12)
    network = builder.network(builder.conv(x, 64, (3, 3), pads=(1, 1, 1, 1)))
    hardware = Accelerator(pes=64, sram_bytes=65_536)
    _, overlapped = run_network(network, hardware)
    _, serial = run_network(network, Accelerator(pes=64, sram_bytes=65_536, double_buffering=False))
    ideal = network.macs() / 64
    assert overlapped.cycles < 1.06 * ideal
    assert serial.cycles > overlapped.cycles
