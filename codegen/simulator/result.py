"""What a simulation gives: cycles, where they went, bytes, energy, and the events behind them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa import Unit
from tvm_ext.codegen.program import Layer, Program

UNTAGGED = Layer("", "OTHER")
"""The layer of instructions that have no tag."""


@dataclass(frozen=True)
class Events:
    """One entry an instruction, in the order in which they started; enough for a Gantt chart.

    Attributes
    ----------
    pc, unit : ndarray of int64
        The instruction and its unit.
    start, end : ndarray of int64
        It ran in cycles [start, end).
    wait : ndarray of int64
        Cycles before `start` in which its unit had nothing else to do and waited for a token.
    wait_for : ndarray of int64
        The unit whose token came last, -1 without a wait.
    bus_wait : ndarray of int64
        Of the cycles in [start, end), those in which the other unit had the bus.
    macs, sram_bytes, memory_bytes : ndarray of int64
        Products; bytes of its operands in SRAM; bytes that it moved to or from system memory.
    """

    pc: np.ndarray
    unit: np.ndarray
    start: np.ndarray
    end: np.ndarray
    wait: np.ndarray
    wait_for: np.ndarray
    bus_wait: np.ndarray
    macs: np.ndarray
    sram_bytes: np.ndarray
    memory_bytes: np.ndarray


@dataclass(frozen=True)
class Result:
    """One run of a program.

    Attributes
    ----------
    program : Program
        What ran.
    accelerator : Accelerator
        What it ran on.
    cycles : int
        Until the last unit stopped.
    events : Events
        What every unit did when.
    leftover_tokens : dict
        By queue, the tokens that nothing took.
    """

    program: Program
    accelerator: Accelerator
    cycles: int
    events: Events
    leftover_tokens: dict[str, int]

    @property
    def seconds(self) -> float:
        """At the accelerator's clock."""
        return self.cycles / self.accelerator.clock_hz

    @property
    def macs(self) -> int:
        """Products of int8 values that were added up."""
        return int(self.events.macs.sum())

    @property
    def utilization(self) -> float:
        """The share of all PEs in all cycles that multiplied and added."""
        return self.macs / (self.accelerator.pes * self.cycles) if self.cycles else 0.0

    @property
    def dma_read_bytes(self) -> int:
        """Bytes from system memory."""
        return int(self.events.memory_bytes[self.events.unit == Unit.LOAD].sum())

    @property
    def dma_write_bytes(self) -> int:
        """Bytes to system memory."""
        return int(self.events.memory_bytes[self.events.unit == Unit.STORE].sum())

    @property
    def sram_bytes(self) -> int:
        """Bytes read from and written to SRAM, each operand of each instruction once."""
        return int(self.events.sram_bytes.sum())

    @property
    def energy_pj(self) -> float:
        """Picojoules: products, SRAM bytes and bytes over the bus times their energies."""
        hardware = self.accelerator
        return (
            self.macs * hardware.energy_per_mac_pj
            + self.sram_bytes * hardware.energy_per_sram_byte_pj
            + int(self.events.memory_bytes.sum()) * hardware.energy_per_dram_byte_pj
        )

    def unit_cycles(self) -> dict[Unit, dict[str, int]]:
        """For each unit, cycles by cause; they add up to `cycles`.

        The causes: ``busy``; ``wait for load``, ``wait for compute``, ``wait for store`` for a
        token; ``bus``; ``ended``, behind the unit's last instruction.
        """
        events, answer = self.events, {}
        for unit in Unit:
            mine = events.unit == unit
            bus = int(events.bus_wait[mine].sum())
            answer[unit] = {"busy": int((events.end - events.start)[mine].sum()) - bus, "bus": bus}
            for other in (unit.previous, unit.next):
                waits = events.wait[mine & (events.wait_for == other)]
                answer[unit][f"wait for {other.label}"] = int(waits.sum())
            answer[unit]["ended"] = self.cycles - sum(answer[unit].values())
        return answer

    def cycles_by_instruction(self) -> dict[str, int]:
        """By mnemonic, the cycles that its unit was busy with it."""
        events, answer = self.events, dict[str, int]()
        busy = events.end - events.start - events.bus_wait
        for pc, cycles in zip(events.pc.tolist(), busy.tolist(), strict=True):
            mnemonic = self.program.instructions[pc].mnemonic
            answer[mnemonic] = answer.get(mnemonic, 0) + cycles
        return answer

    def cycles_by_layer(self) -> dict[Layer, int]:
        """By layer, its share of the run; the shares add up to `cycles`.

        Each cycle belongs to the layer of the compute instruction that ends next: its own work, and
        what the compute unit waited for it. Cycles behind the last one belong to the layer of the
        instruction that ends last.
        """
        events, last, shares = self.events, 0, dict[Layer, int]()
        compute = events.unit == Unit.COMPUTE
        work = compute & (events.end > events.start)
        for pc, end in zip(events.pc[work].tolist(), events.end[work].tolist(), strict=True):
            layer = self._layer(pc)
            shares[layer] = shares.get(layer, 0) + end - last
            last = end
        if last < self.cycles:
            final = int(events.pc[np.argmax(events.end)])
            layer = self._layer(final)
            shares[layer] = shares.get(layer, 0) + self.cycles - last
        return shares

    def cycles_by_kind(self) -> dict[str, int]:
        """`cycles_by_layer` summed by kind of layer: CONV, DEPTH, REQUANT, ..."""
        shares: dict[str, int] = {}
        for layer, cycles in self.cycles_by_layer().items():
            shares[layer.kind] = shares.get(layer.kind, 0) + cycles
        return shares

    def macs_by_layer(self) -> dict[Layer, int]:
        """By layer, its products; layers without any are left out."""
        answer: dict[Layer, int] = {}
        for pc, macs in zip(self.events.pc.tolist(), self.events.macs.tolist(), strict=True):
            if macs:
                layer = self._layer(pc)
                answer[layer] = answer.get(layer, 0) + macs
        return answer

    def _layer(self, pc: int) -> Layer:
        tag = self.program.tags[pc]
        return self.program.layers[tag] if tag >= 0 else UNTAGGED
