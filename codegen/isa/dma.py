"""What both DMA instructions share: strided boxes of bytes on either side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa.costs import bus_cycles, dma_cycles
from tvm_ext.codegen.isa.definition import Definition, Field, Work
from tvm_ext.codegen.isa.operand import MEMORY, SRAM, Operand
from tvm_ext.codegen.isa.operation import Operation

RANKS = (1, 2, 3)


class Dma(Definition):
    """A copy of (planes, rows, bytes) bytes; the rank says which of the counts are used."""

    cost = (
        "dma_latency_cycles + runs * ceil(run bytes / dma_bytes_per_cycle), runs in system memory"
    )
    fields = (
        Field("memory", 32, "first byte in system memory"),
        Field("sram", 32, "first byte in SRAM"),
        Field("bytes", 32, "bytes of a row"),
        Field("rank", 2, "1: one row; 2: `rows` rows; 3: `planes` times `rows` rows"),
    )
    registers = (
        "rows", "planes", "memory_row_stride", "memory_plane_stride", "sram_row_stride",
        "sram_plane_stride",
    )  # fmt: skip

    def boxes(self, operation: Operation) -> tuple[Operand, Operand]:
        """The bytes in system memory and those in SRAM."""
        fields = operation.fields
        rank, run = fields["rank"], fields["bytes"]
        if rank not in RANKS:
            operation.refuse(f"field rank is {rank}; allowed: {', '.join(map(str, RANKS))}")
        if run < 1:
            operation.refuse("field bytes is 0; allowed: 1 or more")
        shape = (
            operation.size("planes") if rank == 3 else 1,
            operation.size("rows") if rank >= 2 else 1,
            run,
        )
        memory, sram = (
            Operand(
                name,
                space,
                fields[name],
                shape,
                operation.whole(f"{name}_plane_stride"),
                operation.whole(f"{name}_row_stride"),
                "uint8",
            )
            for name, space in (("memory", MEMORY), ("sram", SRAM))
        )
        return memory, sram

    def evaluate(self, operation: Operation, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [inputs[0]]

    def work(self, operation: Operation, accelerator: Accelerator) -> Work:
        (outer, _), (inner, _), run = self.boxes(operation)[0].runs
        return Work(
            dma_cycles(accelerator, run, outer * inner),
            bus_cycles=bus_cycles(accelerator, run, outer * inner),
        )
