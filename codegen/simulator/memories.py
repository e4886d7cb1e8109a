"""SRAM and system memory with their bounds, and which bytes have been written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import AddressError, OperandError, UnwrittenReadError
from tvm_ext.codegen.isa import DEFINITIONS, MEMORY, SRAM, Operand, Operands, Operation
from tvm_ext.codegen.program import Program


class Memories:
    """The two address spaces.

    Parameters
    ----------
    program : Program
        Its constants and inputs count as written.
    accelerator : Accelerator
        Has the size of the SRAM.
    memory : ndarray of uint8
        System memory; changed in place.
    """

    def __init__(self, program: Program, accelerator: Accelerator, memory: np.ndarray) -> None:
        self._bytes = {SRAM: np.zeros(accelerator.sram_bytes, np.uint8), MEMORY: memory}
        self._written = {space: np.zeros(len(data), bool) for space, data in self._bytes.items()}
        written = self._written[MEMORY]
        written[: len(program.constants)] = True
        for buffer in program.buffers:
            if buffer.role == "input":
                written[buffer.address : buffer.end] = True

    def check(self, operation: Operation, operands: Operands) -> None:
        """Whether the operands are in bounds, aligned, and written before they are read.

        Raises
        ------
        AddressError
            An operand leaves its space, or 4-byte values don't start at a multiple of 4.
        OperandError
            Parts of a result fall on each other, or on an input that it can't be in place of.
        UnwrittenReadError
            Nothing has written a byte that is read.
        """
        for operand in (*operands.reads, *operands.writes):
            size = len(self._bytes[operand.space])
            if operand.end > size:
                raise AddressError(
                    f"{operand.name} takes {operand.space} {operand.address:#x} to "
                    f"{operand.end:#x}; allowed: up to {size:#x}",
                    operation.pc,
                    operation.mnemonic,
                )
            if operand.address % operand.item_bytes:
                raise AddressError(
                    f"{operand.name} has {operand.dtype} values at {operand.address:#x}; "
                    f"allowed: multiples of {operand.item_bytes}",
                    operation.pc,
                    operation.mnemonic,
                )
        for operand in operands.reads:
            flags = operand.bytes_in(self._written[operand.space])
            if not flags.all():
                self._refuse_unwritten(operation, operand, flags)
        for operand in operands.writes:
            if operand.overlaps_itself:
                raise OperandError(
                    f"parts of {operand.name} fall on each other: shape {operand.shape} of "
                    f"{operand.dtype}, pitches {operand.row_pitch} and {operand.pixel_pitch}",
                    operation.pc,
                    operation.mnemonic,
                )
            self._check_in_place(operation, operand, operands.reads)

    def read(self, operand: Operand) -> np.ndarray:
        """The values of an operand, not copied."""
        return operand.view(self._bytes[operand.space])

    def write(self, operand: Operand, values: np.ndarray) -> None:
        """Set the values of an operand."""
        operand.view(self._bytes[operand.space])[...] = values

    def mark_written(self, operand: Operand) -> None:
        """Note that an operand's bytes have values now."""
        operand.bytes_in(self._written[operand.space])[...] = True

    def _check_in_place(
        self, operation: Operation, result: Operand, reads: tuple[Operand, ...]
    ) -> None:
        allowed = DEFINITIONS[operation.mnemonic].in_place
        for operand in reads:
            if operand.shares_bytes(result) and not (
                operand.name in allowed and replace(operand, name=result.name) == result
            ):
                raise OperandError(
                    f"{result.name} ({result.address:#x} to {result.end:#x}) falls on "
                    f"{operand.name} ({operand.address:#x} to {operand.end:#x}); in place are "
                    f"allowed: {', '.join(allowed) or 'none'}, as the very same box",
                    operation.pc,
                    operation.mnemonic,
                )

    def _refuse_unwritten(self, operation: Operation, operand: Operand, flags: np.ndarray) -> None:
        addresses = np.arange(operand.address, operand.end, dtype=np.int64)
        first = int(operand.bytes_in(addresses, operand.address)[~flags].min())
        raise UnwrittenReadError(
            f"reads {operand.name} at {operand.space} {operand.address:#x} to {operand.end:#x}, "
            f"of which {np.count_nonzero(~flags)} bytes, the first at {first:#x}, have never been "
            "written",
            operation.pc,
            operation.mnemonic,
        )
