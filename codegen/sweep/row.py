"""One point of a sweep: what a model costs on one variant, or why it doesn't run there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.sizes import format_size
from tvm_ext.codegen.time_network import time_network
from tvm_ext.errors import TvmExtError


@dataclass(frozen=True)
class _Hardware:
    """What rows and failures have: the point.

    Attributes
    ----------
    accelerator : Accelerator
    mapping : str
        Of `compile_network`.
    """

    accelerator: Accelerator
    mapping: str

    @property
    def label(self) -> str:
        """As in figure 4: memory, PEs, and I or O for input- or output-parallel."""
        hardware = self.accelerator
        return f"{format_size(hardware.sram_bytes)} {hardware.pes} {hardware.parallel[0].upper()}"


@dataclass(frozen=True)
class Row(_Hardware):
    """Costs of all subgraphs of a model, one after the other.

    Attributes
    ----------
    cycles : int
        Of all subgraphs.
    cycles_by_kind : dict of str to int
        Shares of `cycles` by kind of layer: CONV, DEPTH, REQUANT, ... (figure 4).
    macs : int
        Multiply-accumulates of the layers that run on the accelerator.
    dma_read_bytes, dma_write_bytes : int
        From and to system memory.
    energy_pj : float
        By the accelerator's energies for products, SRAM and system memory.
    subgraphs : int
        Networks that the model was cut into.
    instructions : int
        Of all their programs.
    """

    cycles: int
    cycles_by_kind: dict[str, int]
    macs: int
    dma_read_bytes: int
    dma_write_bytes: int
    energy_pj: float
    subgraphs: int
    instructions: int

    @property
    def sram_bytes(self) -> int:
        """Size of the accelerator's memory."""
        return self.accelerator.sram_bytes

    @property
    def pes(self) -> int:
        """Number of processing elements."""
        return self.accelerator.pes

    @property
    def utilization(self) -> float:
        """Products per PE and cycle, 0 to 1."""
        return self.macs / (self.pes * self.cycles) if self.cycles else 0.0

    @property
    def seconds(self) -> float:
        """At the accelerator's clock."""
        return self.cycles / self.accelerator.clock_hz


@dataclass(frozen=True)
class Failure(_Hardware):
    """A point that has no costs.

    Attributes
    ----------
    error : str
        The class of the error, such as ``LoweringError``; ``process`` where the point's process
        crashed or ran out of time.
    reason : str
        Its message.
    """

    error: str
    reason: str

    def __str__(self) -> str:
        where = f"{self.label}, depthwise {self.accelerator.depthwise}, mapping {self.mapping}"
        return f"{where}: {self.error}: {self.reason}"


Point: TypeAlias = Row | Failure


def run_point(
    networks: Sequence[tuple[Network, int]], accelerator: Accelerator, mapping: str
) -> Point:
    """Compile and time networks on one variant, without computing values.

    Parameters
    ----------
    networks : sequence of (Network, int)
        Each with the number of times that it runs.
    accelerator : Accelerator
    mapping : str

    Returns
    -------
    Row or Failure
        A failure where one of the networks doesn't fit the accelerator.
    """
    try:
        return _row(networks, accelerator, mapping)
    except TvmExtError as error:
        return Failure(accelerator, mapping, type(error).__name__, str(error))


def _row(networks: Sequence[tuple[Network, int]], accelerator: Accelerator, mapping: str) -> Row:
    cycles = macs = read = written = instructions = 0
    energy, kinds = 0.0, dict[str, int]()
    for network, runs in networks:
        result = time_network(network, accelerator, mapping=mapping)
        cycles += runs * result.cycles
        macs += runs * network.macs()
        read += runs * result.dma_read_bytes
        written += runs * result.dma_write_bytes
        energy += runs * result.energy_pj
        instructions += len(result.program.instructions)
        for kind, share in result.cycles_by_kind().items():
            kinds[kind] = kinds.get(kind, 0) + runs * share
    return Row(
        accelerator, mapping, cycles, kinds, macs, read, written, energy, len(networks),
        instructions,
    )  # fmt: skip
