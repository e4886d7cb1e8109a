"""OP_DMA_WRITE: SRAM to system memory."""

from __future__ import annotations

from tvm_ext.codegen.isa.definition import Operands, define
from tvm_ext.codegen.isa.dma import Dma
from tvm_ext.codegen.isa.operation import Operation
from tvm_ext.codegen.isa.units import Unit


@define
class OpDmaWrite(Dma):
    """Stores results, and activations that don't fit the SRAM."""

    mnemonic = "OP_DMA_WRITE"
    opcode = 0x03
    unit = Unit.STORE
    summary = "copies up to three-dimensional strided bytes from SRAM to system memory"
    meaning = "memory[p, r, b] := sram[p, r, b]"

    def operands(self, operation: Operation) -> Operands:
        memory, sram = self.boxes(operation)
        return Operands((sram,), (memory,))
