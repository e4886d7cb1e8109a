"""The command stream while it grows: instructions with what they touch and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa import (
    DEFINITIONS,
    Instruction,
    Operand,
    Operation,
    Unit,
    registers_of,
    set_register,
)

RegisterValue = int | float


@dataclass(slots=True)
class Step:
    """One instruction.

    Attributes
    ----------
    instruction : Instruction
        Without tokens.
    unit : Unit
        Where it runs.
    reads, writes : tuple of Operand
        Empty for OP_SET.
    cycles, bus_cycles : int
        As of `isa.Work`.
    tag : int
        Index of the layer.
    """

    instruction: Instruction
    unit: Unit
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    cycles: int
    bus_cycles: int
    tag: int


@dataclass(frozen=True)
class Copy:
    """A box of bytes in system memory and in SRAM: (planes, rows, bytes) with strides."""

    memory: int
    sram: int
    sizes: tuple[int, int, int]
    memory_strides: tuple[int, int]
    sram_strides: tuple[int, int]


class Stream:
    """Instructions in an order in which they would be right one after the other.

    Registers are set when their value changes. What an instruction touches and costs is asked from
    the ISA's own definition.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self.steps: list[Step] = []
        self._accelerator = accelerator
        self._registers: dict[Unit, dict[str, RegisterValue]] = {
            unit: {name: entry.reset for name, entry in registers_of(unit).items()} for unit in Unit
        }

    def add(
        self,
        mnemonic: str,
        fields: Mapping[str, int],
        registers: Mapping[str, RegisterValue],
        tag: int,
    ) -> None:
        """Append an instruction, and OP_SETs before it for the registers that change."""
        names = (entry.name for entry in DEFINITIONS[mnemonic].fields)
        made = Instruction(mnemonic, tuple(fields.get(name, 0) for name in names))
        unit = made.unit
        current = self._registers[unit]
        for name, value in registers.items():
            if isinstance(value, float):
                value = float(np.float32(value))
            if current[name] != value:
                current[name] = value
                setter = set_register(unit, name, value)
                self.steps.append(Step(setter, unit, (), (), 1, 0, tag))
        definition = DEFINITIONS[mnemonic]
        operation = Operation(len(self.steps), mnemonic, made.fields, current)
        operands = definition.operands(operation)
        work = definition.work(operation, self._accelerator)
        self.steps.append(
            Step(made, unit, operands.reads, operands.writes, work.cycles, work.bus_cycles, tag)
        )

    def read(self, copy: Copy, tag: int) -> None:
        """Append a load to SRAM."""
        self._copy("OP_DMA_READ", copy, tag)

    def write(self, copy: Copy, tag: int) -> None:
        """Append a store to system memory."""
        self._copy("OP_DMA_WRITE", copy, tag)

    def _copy(self, mnemonic: str, copy: Copy, tag: int) -> None:
        (planes, rows, run), (memory, sram) = copy.sizes, (copy.memory_strides, copy.sram_strides)
        if rows > 1 and memory[1] == sram[1] == run:
            rows, run = 1, rows * run
        if rows == 1:
            # What is left of three dimensions is the planes.
            planes, rows = 1, planes
            memory, sram = (0, memory[0]), (0, sram[0])
            if memory[1] == sram[1] == run:
                rows, run = 1, rows * run
        elif planes > 1 and memory[0] == rows * memory[1] and sram[0] == rows * sram[1]:
            planes, rows = 1, planes * rows
        rank = 3 if planes > 1 else 2 if rows > 1 else 1
        registers: dict[str, RegisterValue] = {}
        if rank >= 2:
            registers |= {
                "rows": rows, "memory_row_stride": memory[1], "sram_row_stride": sram[1],
            }  # fmt: skip
        if rank == 3:
            registers |= {
                "planes": planes, "memory_plane_stride": memory[0], "sram_plane_stride": sram[0],
            }  # fmt: skip
        fields = {"memory": copy.memory, "sram": copy.sram, "bytes": run, "rank": rank}
        self.add(mnemonic, fields, registers, tag)
