"""A convolution in SCALE-Sim and on our accelerator, with the terms that both consist of.

An array with dataflow ``os`` of G x L PEs is our output-parallel mode with G pixels and L output
channels at a time; one with ``ws`` of L x 1 PEs is our input-parallel mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.accelerator_networks import part
from benchmarks.scalesim_engine import Array, Report, Window
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa import Unit
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_layers import Conv
from tvm_ext.codegen.time_network import time_network

FAST_BUS = 2**16
"""Bytes a cycle, the most that there can be: SCALE-Sim's mode CALC doesn't wait for memory."""


@dataclass(frozen=True)
class Layer:
    """A convolution of a network, on its own.

    Attributes
    ----------
    name : str
    window : Window
    network : Network
        The layer alone.
    count : int
        So many of the network's layers have this shape.
    """

    name: str
    window: Window
    network: Network
    count: int


@dataclass(frozen=True)
class Row:
    """A layer in both simulators.

    Attributes
    ----------
    layer : Layer
    theirs : Report
    their_fill : int
        Of SCALE-Sim's cycles, those in which the array fills and drains.
    cycles : int
        Ours, whole: from the first load to the last store.
    computing : int
        Of ours, those in which the compute unit has an instruction other than OP_SET.
    our_fill : int
        Of those, `fill_cycles` of each instruction.
    memory_bytes : int
        Over our bus.
    """

    layer: Layer
    theirs: Report
    their_fill: int
    cycles: int
    computing: int
    our_fill: int
    memory_bytes: int

    @property
    def their_steady(self) -> int:
        """SCALE-Sim's cycles without fill and drain."""
        return self.theirs.cycles - self.their_fill

    @property
    def our_steady(self) -> int:
        """Cycles of our compute unit without fill."""
        return self.computing - self.our_fill


def hardware(array: Array) -> Accelerator:
    """Our accelerator with as many PEs for the same, as much SRAM, and no wait for memory.

    Raises
    ------
    ValueError
        An array with dataflow ``ws`` and several columns: no mode of ours is like it.
    """
    if array.dataflow == "ws" and array.width > 1:
        raise ValueError(f"dataflow ws with {array.width} columns; allowed: 1")
    return Accelerator(
        pes=array.height * array.width,
        pixel_parallel=array.height if array.dataflow == "os" else 1,
        parallel="output" if array.dataflow == "os" else "input",
        sram_bytes=3 * 1024 * array.sram_kib,
        dma_bytes_per_cycle=FAST_BUS,
        dma_latency_cycles=0,
    )


def layers(network: Network) -> list[Layer]:
    """The dense convolutions of a network; those of the same shape are one."""
    found: dict[Window, list[Conv]] = {}
    for layer in network.layers:
        if isinstance(layer, Conv) and not layer.is_depthwise():
            found.setdefault(_window(network, layer), []).append(layer)
    return [
        Layer(same[0].name, window, part(network, same[:1]), len(same))
        for window, same in found.items()
    ]


def folds(window: Window, array: Array) -> tuple[int, int]:
    """How often SCALE-Sim fills the array, and the cycles that each time takes besides."""
    if array.dataflow == "os":
        times = -(-window.pixels // array.height) * -(-window.filters // array.width)
        # Values reach the last row and column so much later than the first.
        return times, array.height + array.width - 2
    times = -(-window.terms // array.height) * -(-window.filters // array.width)
    # Weights are shifted in row by row, and then the same for pixels and sums.
    return times, 2 * array.height + array.width - 2


def steady_cycles(window: Window, array: Array) -> int:
    """SCALE-Sim's cycles without fill and drain, by its dataflow's definition."""
    times, _ = folds(window, array)
    return times * (window.terms if array.dataflow == "os" else window.pixels)


def measure(layer: Layer, array: Array, simulate: Callable[[Window, Array], Report]) -> Row:
    """Run a layer in both; `simulate` is SCALE-Sim."""
    theirs = simulate(layer.window, array)
    accelerator = hardware(array)
    result = time_network(layer.network, accelerator)
    events, instructions = result.events, result.program.instructions
    mine = [
        end - start
        for pc, unit, start, end in zip(
            events.pc.tolist(), events.unit.tolist(), events.start.tolist(), events.end.tolist(),
            strict=True,
        )
        if unit == Unit.COMPUTE and instructions[pc].mnemonic.startswith("OP_CONV")
    ]  # fmt: skip
    times, extra = folds(layer.window, array)
    return Row(
        layer, theirs, times * extra, result.cycles, sum(mine),
        len(mine) * accelerator.fill_cycles, result.dma_read_bytes + result.dma_write_bytes,
    )  # fmt: skip


def check(rows: Sequence[Row], array: Array) -> None:
    """Refuse rows that the documented terms don't explain.

    Raises
    ------
    RuntimeError
        SCALE-Sim's cycles aren't those of its products plus fill and drain. Or ours without fill
        are another number; in input-parallel mode more of them are right for layers with too few
        channels for the lanes, because an instruction sums one tap at a time.
    """
    for row in rows:
        window = row.layer.window
        if row.their_steady != steady_cycles(window, array):
            raise RuntimeError(
                f"{window}: {row.theirs.cycles} cycles of SCALE-Sim; with fill and drain of "
                f"{row.their_fill}, {steady_cycles(window, array) + row.their_fill} are explained"
            )
        more = array.dataflow == "ws" and window.taps > 1 and window.channels % array.height > 0
        if row.our_steady < row.their_steady or (row.our_steady > row.their_steady and not more):
            raise RuntimeError(
                f"{window}: {row.our_steady} cycles of products against {row.their_steady} of "
                f"SCALE-Sim on {array}"
            )


def _window(network: Network, layer: Conv) -> Window:
    filters, channels, *kernel = network.constants[layer.weight].shape
    _, _, height, width = network.tensors[layer.output].shape
    return Window(height, width, (kernel[0], kernel[1]), layer.strides[0], channels, filters)
