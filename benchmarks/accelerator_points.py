"""One network on one accelerator: its cycles, where they go, and what it took to find out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from time import perf_counter

import numpy as np

from benchmarks.accelerator_networks import mobilenet_v1, mobilenet_v1_without_depthwise, resnet18
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import compile_network
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_layers import Conv
from tvm_ext.codegen.simulator import Result, simulate
from tvm_ext.codegen.sizes import format_size

KIB, MIB = 2**10, 2**20
SIZES = (512 * KIB, MIB, 256 * MIB)


@dataclass(frozen=True)
class Setup:
    """What is run on what.

    Attributes
    ----------
    model : str
        ``mobilenet_v1`` or ``resnet18``, at 224x224.
    mapping : str
        ``auto`` or ``baseline``.
    pes, sram_bytes, parallel, depthwise
        As of `Accelerator`.
    """

    model: str
    mapping: str
    pes: int = 64
    sram_bytes: int = 512 * KIB
    parallel: str = "output"
    depthwise: str = "hardware"

    @property
    def label(self) -> str:
        """As in the paper's figure 4: memory, PEs, I or O."""
        return f"{format_size(self.sram_bytes)}, {self.pes} {self.parallel[0].upper()}"

    @property
    def accelerator(self) -> Accelerator:
        """The hardware."""
        return Accelerator(
            pes=self.pes, sram_bytes=self.sram_bytes, parallel=self.parallel,
            depthwise=self.depthwise,
        )  # fmt: skip


@dataclass(frozen=True)
class Point:
    """A result.

    Attributes
    ----------
    setup : Setup
    cycles : int
    kinds : dict of str to int
        Cycles by kind of layer.
    utilization : float
        Share of the PEs in use, over all cycles.
    utilization_3x3 : float
        The same over the cycles of 3x3 convolutions that aren't depthwise; 0 without any.
    dma_bytes : int
    compile_seconds, simulate_seconds : float
        Of this machine's time; simulated with checks and timing, without values.
    """

    setup: Setup
    cycles: int
    kinds: dict[str, int]
    utilization: float
    utilization_3x3: float
    dma_bytes: int
    compile_seconds: float
    simulate_seconds: float


def run(setup: Setup) -> Point:
    """Compile and simulate; without depthwise support, the parts that the accelerator gets."""
    hardware, results = setup.accelerator, list[Result]()
    compiling = simulating = 0.0
    macs_3x3 = cycles_3x3 = 0
    for network in _networks(setup.model, setup.depthwise):
        start = perf_counter()
        program = compile_network(network, hardware, mapping=setup.mapping)
        compiling += perf_counter() - start
        memory = program.memory_image(
            {b.name: np.zeros(b.shape, np.int8) for b in program.buffers if b.role == "input"}
        )
        start = perf_counter()
        results.append(simulate(program, hardware, memory, arithmetic=False))
        simulating += perf_counter() - start
        macs, cycles = _window_share(network, results[-1])
        macs_3x3, cycles_3x3 = macs_3x3 + macs, cycles_3x3 + cycles
    total = sum(result.cycles for result in results)
    kinds: dict[str, int] = {}
    for result in results:
        for kind, count in result.cycles_by_kind().items():
            kinds[kind] = kinds.get(kind, 0) + count
    return Point(
        setup, total, kinds, sum(r.macs for r in results) / (total * setup.pes),
        macs_3x3 / (cycles_3x3 * setup.pes) if cycles_3x3 else 0.0,
        sum(r.dma_read_bytes + r.dma_write_bytes for r in results), compiling, simulating,
    )  # fmt: skip


@cache
def _networks(model: str, depthwise: str) -> list[Network]:
    if model == "resnet18":
        return [resnet18()]
    return mobilenet_v1_without_depthwise() if depthwise == "none" else [mobilenet_v1()]


def _window_share(network: Network, result: Result) -> tuple[int, int]:
    """Products and cycles of the dense 3x3 convolutions."""
    names = {
        layer.name
        for layer in network.layers
        if isinstance(layer, Conv)
        and not layer.is_depthwise()
        and network.constants[layer.weight].shape[2:] == (3, 3)
    }
    macs = sum(n for layer, n in result.macs_by_layer().items() if layer.name in names)
    cycles = sum(n for layer, n in result.cycles_by_layer().items() if layer.name in names)
    return macs, cycles
