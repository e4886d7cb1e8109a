"""What instructions share that work value by value on (out_height, out_width, out_channels)."""

from __future__ import annotations

from typing import ClassVar

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa.costs import elementwise_cycles
from tvm_ext.codegen.isa.definition import Definition, Field, Operands, Work
from tvm_ext.codegen.isa.operation import Operation

SHAPE_REGISTERS = ("out_height", "out_width", "out_channels")
INPUT = Field("input", 32, "SRAM address of the input")
OTHER = Field("other", 32, "SRAM address of the second input")
OUTPUT = Field("output", 32, "SRAM address of the result")
_ONE = (
    *SHAPE_REGISTERS, "input_row_pitch", "input_pixel_pitch", "output_row_pitch",
    "output_pixel_pitch",
)  # fmt: skip


class Elementwise(Definition):
    """All PEs are lanes. A pitch of 0 repeats an input's row or pixel."""

    cost = "fill_cycles + ceil(elements / pes)"
    in_place: ClassVar[tuple[str, ...]] = ("input", "other")

    def shape(self, operation: Operation) -> tuple[int, int, int]:
        """Rows, pixels, channels."""
        size = operation.size
        return size("out_height"), size("out_width"), size("out_channels")

    def work(self, operation: Operation, accelerator: Accelerator) -> Work:
        rows, pixels, channels = self.shape(operation)
        return Work(elementwise_cycles(accelerator, rows * pixels * channels))


class Unary(Elementwise):
    """One int8 input, an int8 result."""

    inputs, output = "int8", "int8"
    fields = (INPUT, OUTPUT)
    in_place = ("input",)
    registers: ClassVar[tuple[str, ...]] = _ONE

    def operands(self, operation: Operation) -> Operands:
        shape, fields = self.shape(operation), operation.fields
        return Operands(
            (operation.image("input", fields["input"], shape),),
            (operation.image("output", fields["output"], shape),),
        )


class Binary(Elementwise):
    """Two int8 inputs, an int8 result."""

    inputs, output = "int8, int8", "int8"
    fields = (INPUT, OTHER, OUTPUT)
    registers: ClassVar[tuple[str, ...]] = (*_ONE, "other_row_pitch", "other_pixel_pitch")

    def operands(self, operation: Operation) -> Operands:
        shape, fields = self.shape(operation), operation.fields
        return Operands(
            (
                operation.image("input", fields["input"], shape),
                operation.image("other", fields["other"], shape),
            ),
            (operation.image("output", fields["output"], shape),),
        )
