"""What doesn't fit is found before a command stream is made, as making one finds it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.lowering_networks import Builder, random_network, run_network
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.lowering import RoomCheck, compile_network
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_elementwise import Relu


def fits(network: Network, hardware: Accelerator) -> str:
    """The reason why it doesn't, empty if it does."""
    try:
        RoomCheck(hardware).check(network)
    except LoweringError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("sram_bytes", [64, 150, 700])
@pytest.mark.parametrize("seed", range(6))
def test_it_says_what_lowering_says(seed: int, sram_bytes: int) -> None:
    network, hardware = random_network(seed), Accelerator(pes=8, sram_bytes=sram_bytes)
    if reason := fits(network, hardware):
        assert f"allowed: {sram_bytes}" in reason
        with pytest.raises(LoweringError):
            compile_network(network, hardware)
    else:
        run_network(network, hardware)


def test_more_than_the_addresses_reach() -> None:
    builder = Builder(np.random.default_rng(0))
    network = builder.network(builder.elementwise(Relu, builder.input(1, 2**15, 2**9, 2**8)))
    assert f"{2**33} bytes of tensors and constants; allowed: {2**32}" in fits(
        network, Accelerator()
    )


def test_a_reshape_that_keeps_the_order_from_an_input_to_an_output_is_a_copy() -> None:
    builder = Builder(np.random.default_rng(0))
    network = builder.network(builder.reshape(builder.input(1, 37, 1, 1), 1, 37))
    run_network(network, Accelerator(pes=8, sram_bytes=64))
