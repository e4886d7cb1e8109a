"""What can't be lowered is refused with the layer, the value and the limit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.lowering_networks import Builder
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.lowering import compile_network


@pytest.fixture
def builder() -> Builder:
    return Builder(np.random.default_rng(0))


def test_sram_too_small_for_one_tile(builder: Builder) -> None:
    network = builder.network(builder.conv(builder.input(1, 3, 9, 9), 4, (7, 7)))
    message = r"layer l0: the smallest tile needs \d+ bytes of SRAM; allowed: 64, the sram_bytes"
    with pytest.raises(LoweringError, match=message):
        compile_network(network, Accelerator(sram_bytes=64))


def test_baseline_needs_a_whole_image(builder: Builder) -> None:
    network = builder.network(builder.conv(builder.input(1, 3, 20, 20), 4, (3, 3)))
    hardware = Accelerator(sram_bytes=2048)
    # 3 * 400 bytes of input, 27 weights and a bias, and 4 * 324 bytes of sums of one channel.
    with pytest.raises(LoweringError, match="layer l0: the smallest tile needs 2528 bytes"):
        compile_network(network, hardware, mapping="baseline")
    compile_network(network, hardware)


def test_sums_beyond_int32(builder: Builder) -> None:
    x = builder.input(1, 1, 8, 8)
    network = builder.network(builder.conv(x, 1, (1, 1)))
    bias = network.constants["l0.bias"]
    bias[0] = 2**31 - 1
    with pytest.raises(LoweringError, match=r"layer l0: its sums can reach \d+; allowed: int32"):
        compile_network(network, Accelerator())
    bias[0] = 2**31 - 1 - 128 * 200
    compile_network(network, Accelerator())


def test_depthwise_without_support(builder: Builder) -> None:
    x = builder.input(1, 4, 8, 8)
    network = builder.network(builder.conv(x, 4, (3, 3), depthwise=True))
    for mapping in ("auto", "baseline"):
        with pytest.raises(LoweringError, match=r"layer l0: a depthwise convolution .*'none'"):
            compile_network(network, Accelerator(depthwise="none"), mapping=mapping)


def test_windows_wider_than_the_hardware_has(builder: Builder) -> None:
    network = builder.network(builder.pool(builder.input(1, 1, 1, 300), "global_average"))
    with pytest.raises(LoweringError, match=r"layer l0: a window of 1 x 300; allowed: .* 256"):
        compile_network(network, Accelerator())


def test_a_reshape_with_pixels_larger_than_the_sram(builder: Builder) -> None:
    x = builder.input(1, 80, 2, 3)
    network = builder.network(builder.reshape(x, 1, 2, 3, 80))
    with pytest.raises(LoweringError, match="layer l0: a reshape with 2 buffers of 80 bytes"):
        compile_network(network, Accelerator(sram_bytes=128))


def test_an_output_that_is_an_input(builder: Builder) -> None:
    x = builder.input(1, 2, 3, 3)
    network = builder.network(builder.pool(x, "max", (1, 1)), x)
    with pytest.raises(LoweringError, match="'x0' is an input and an output"):
        compile_network(network, Accelerator())


def test_unknown_mapping(builder: Builder) -> None:
    network = builder.network(builder.pool(builder.input(1, 2, 3, 3), "max", (2, 2)))
    with pytest.raises(LoweringError, match="mapping 'best'; allowed: auto, search, baseline"):
        compile_network(network, Accelerator(), mapping="best")
