"""A row of taps as input channels, on input-parallel hardware."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.lowering_networks import Builder, run_network
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import NestPlan
from tvm_ext.codegen.lowering.nest import Fold, Nest
from tvm_ext.codegen.network import Network


def stem(
    channels: int, width: int, kernel: tuple[int, int], strides: tuple[int, int],
    pads: tuple[int, int, int, int], dilations: tuple[int, int] = (1, 1),
) -> Network:  # fmt: skip
    builder = Builder(np.random.default_rng(0))
    x = builder.input(1, channels, 11, width)
    return builder.network(builder.conv(x, 5, kernel, strides, pads, dilations))


def first_nest(network: Network, hardware: Accelerator) -> Nest:
    plan, result = run_network(network, hardware)
    assert result.macs == network.macs()
    (item,) = plan.items
    assert isinstance(item, NestPlan)
    return item.nest


@pytest.mark.parametrize("sram_bytes", [700, 100_000])
@pytest.mark.parametrize("width", [10, 11, 12, 13])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 1, 1, 1), (3, 0, 2, 4), (0, 3, 1, 0)])
def test_folded_windows(
    pads: tuple[int, int, int, int], stride: int, width: int, sram_bytes: int
) -> None:
    network = stem(3, width, (3, 5), (2, stride), pads)
    hardware = Accelerator(pes=16, sram_bytes=sram_bytes, parallel="input")
    nest = first_nest(network, hardware)
    assert nest.fold is not None
    assert (nest.reduction, nest.kernel) == (15, (3, 1))


def test_padding_by_hand() -> None:
    """12 pixels, window 5, stride 3, padding 2 left: 4 results reach to pixel 3 * 3 + 5 = 14."""
    network = stem(3, 12, (1, 5), (1, 3), (0, 2, 0, 2))
    nest = first_nest(network, Accelerator(pes=16, sram_bytes=4096, parallel="input"))
    assert nest.fold == Fold(channels=3, stride=3, left=2, right=0)


def test_three_channels_keep_21_of_64_lanes_busy() -> None:
    """The stem of ResNet: 7 passes of 21 products instead of 49 of 3."""
    builder = Builder(np.random.default_rng(1))
    x = builder.input(1, 3, 56, 56)
    network = builder.network(builder.conv(x, 16, (7, 7), (2, 2), (3, 3, 3, 3)))
    _, result = run_network(network, Accelerator(parallel="input"))
    passes = 28 * 28 * 16 * 7
    assert passes < result.cycles < 1.05 * passes


def test_where_folds_do_not_help() -> None:
    output = Accelerator(pes=16, sram_bytes=4096)
    assert first_nest(stem(3, 12, (3, 3), (1, 1), (1, 1, 1, 1)), output).fold is None
    parallel = Accelerator(pes=16, sram_bytes=8192, parallel="input")
    assert first_nest(stem(16, 12, (3, 3), (1, 1), (1, 1, 1, 1)), parallel).fold is None
    dilated = stem(3, 12, (3, 3), (1, 1), (1, 1, 1, 1), (1, 2))
    assert first_nest(dilated, parallel).fold is None
