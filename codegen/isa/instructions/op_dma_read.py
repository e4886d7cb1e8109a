"""OP_DMA_READ: system memory to SRAM."""

from __future__ import annotations

from tvm_ext.codegen.isa.definition import Operands, define
from tvm_ext.codegen.isa.dma import Dma
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.units import Unit


@define
class OpDmaRead(Dma):
    """Loads weights, constants and activations."""

    mnemonic = "OP_DMA_READ"
    opcode = 0x02
    unit = Unit.LOAD
    summary = "copies up to three-dimensional strided bytes from system memory to SRAM"
    meaning = "sram[p, r, b] := memory[p, r, b]"

    def operands(self, operation: Operation) -> Operands:
        memory, sram = self.boxes(operation)
        return Operands((memory,), (sram,))
