"""What layer instructions share: flags, biases, partial sums and the requantised result."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tvm_ext.codegen.isa.arithmetic import requantize
from tvm_ext.codegen.isa.definition import Field
from tvm_ext.codegen.isa.operand import Operand, dense
from tvm_ext.codegen.isa.operation import Operation

ADDRESSES = (
    Field("input", 32, "SRAM address of the input tile"),
    Field("weights", 32, "SRAM address of the weights"),
    Field("output", 32, "SRAM address of the result"),
)
BIAS = Field("bias", 1, "1: adds the int32 biases at `bias_address`")
PER_CHANNEL = Field("per_channel", 1, "1: factors at `scales_address`; 0: the factor `scale`")
WIDE = Field("wide", 1, "1: the result is int32, dense HWC; 0: it is requantised to int8")
ACCUMULATE = Field("accumulate", 1, "1: adds the int32 partial sums at `partial_address`")

REQUANTIZE_REGISTERS = ("output_zero", "clamp_low", "clamp_high", "scale", "scales_address")
OUTPUT_REGISTERS = ("output_row_pitch", "output_pixel_pitch")


def extra_reads(operation: Operation, shape: tuple[int, int, int]) -> Iterator[Operand]:
    """Biases, partial sums and factors, as the flags ask; in the order `finish` takes them."""
    fields, channels = operation.fields, shape[2]
    if fields.get("bias"):
        yield dense("biases", operation.whole("bias_address"), (1, 1, channels), "int32")
    if fields.get("accumulate"):
        yield dense("partial sums", operation.whole("partial_address"), shape, "int32")
    if fields.get("per_channel") and not fields.get("wide"):
        yield dense("scales", operation.whole("scales_address"), (1, 1, channels), "float32")


def result(operation: Operation, shape: tuple[int, int, int]) -> Operand:
    """Where the result goes."""
    if operation.fields.get("wide"):
        return dense("output", operation.fields["output"], shape, "int32")
    return operation.image("output", operation.fields["output"], shape)


def finish(
    operation: Operation, sums: np.ndarray, extra: Iterator[np.ndarray], *, relu: bool = False
) -> np.ndarray:
    """The int32 sums with biases and partial sums, requantised unless the result is wide."""
    fields = operation.fields
    if fields.get("bias"):
        sums = sums + next(extra)
    if fields.get("accumulate"):
        sums = sums + next(extra)
    if fields.get("wide"):
        return sums
    scale = next(extra) if fields.get("per_channel") else operation.registers["scale"]
    if not np.isfinite(scale).all():
        operation.refuse("a factor at scales_address is infinite or not a number")
    zero, (low, high) = operation.whole("output_zero"), operation.clamp()
    return requantize(sums, scale, zero, max(low, zero) if relu else low, high)
