"""The configuration register file: layer parameters that stay across instructions."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa.units import Unit

RegisterValue: TypeAlias = int | float
KINDS = ("u32", "i8", "f32")


@dataclass(frozen=True)
class Register:
    """One register.

    Attributes
    ----------
    number : int
        Its number in OP_SET, 0 to 255, unique in each of its units.
    name : str
        Its name in assembly text.
    kind : str
        ``u32``; ``i8`` (sign-extended to the 32 bits that OP_SET carries); ``f32`` (the bits of an
        IEEE float32, which is finite).
    reset : int or float
        Its value when a program starts.
    meaning : str
        One line for the ISA page.
    units : tuple of Unit
        The units that have it, each its own copy.
    """

    number: int
    name: str
    kind: str
    reset: RegisterValue
    meaning: str
    units: tuple[Unit, ...] = (Unit.COMPUTE,)

    def bits(self, value: RegisterValue) -> int:
        """The 32 bits that OP_SET carries for a value.

        Raises
        ------
        ProgramError
            The register can't hold the value.
        """
        if self.kind == "f32":
            with np.errstate(over="ignore"):
                single = np.float32(value)
            if not np.isfinite(single):
                raise ProgramError(
                    f"register {self.name}: {value!r}; allowed: a finite float32 value"
                )
            return int(single.view(np.uint32))
        low, high = (-128, 127) if self.kind == "i8" else (0, 2**32 - 1)
        if not isinstance(value, (int, np.integer)) or not low <= value <= high:
            raise ProgramError(
                f"register {self.name}: {value!r}; allowed: a whole number from {low} to {high}"
            )
        return int(value) % 2**32

    def value(self, bits: int) -> RegisterValue:
        """The value that 32 bits stand for; a float32 value comes as a Python float.

        Raises
        ------
        ProgramError
            No value of this register has these bits.
        """
        if self.kind == "u32":
            return bits
        if self.kind == "f32":
            single: float = struct.unpack("<f", struct.pack("<I", bits))[0]
            if single - single != 0:
                raise ProgramError(
                    f"register {self.name}: bits {bits:#010x} are {single}; "
                    "allowed: a finite float32 value"
                )
            return single
        value = bits - 2**32 if bits >= 2**31 else bits
        if not -128 <= value <= 127:
            raise ProgramError(f"register {self.name}: {value}; allowed: -128 to 127")
        return value


_BY_NAME: dict[tuple[Unit, str], Register] = {}
_BY_NUMBER: dict[tuple[Unit, int], Register] = {}


def add_register(register: Register) -> Register:
    """Make a register known; its name and number are new in each of its units."""
    for unit in register.units:
        if (unit, register.name) in _BY_NAME or (unit, register.number) in _BY_NUMBER:
            raise ValueError(
                f"register {register.number} ({register.name}) of {unit.label} is taken"
            )
        _BY_NAME[unit, register.name] = _BY_NUMBER[unit, register.number] = register
    return register


def registers_of(unit: Unit) -> dict[str, Register]:
    """The registers of a unit by name, in the order of their numbers."""
    numbers = sorted(number for owner, number in _BY_NUMBER if owner is unit)
    return {_BY_NUMBER[unit, n].name: _BY_NUMBER[unit, n] for n in numbers}


def register_named(unit: Unit, name: str) -> Register:
    """A unit's register of this name, or `ProgramError` with the names that there are."""
    if (register := _BY_NAME.get((unit, name))) is None:
        raise ProgramError(
            f"the {unit.label} unit has no register {name!r}; "
            f"it has: {', '.join(registers_of(unit))}"
        )
    return register


def register_numbered(unit: Unit, number: int) -> Register:
    """A unit's register of this number, or `ProgramError`."""
    if (register := _BY_NUMBER.get((unit, number))) is None:
        raise ProgramError(f"the {unit.label} unit has no register {number}")
    return register


_DMA = (Unit.LOAD, Unit.STORE)
for _register in (
    Register(0, "in_height", "u32", 0, "rows of the input tile"),
    Register(1, "in_width", "u32", 0, "pixels of an input row"),
    Register(2, "in_channels", "u32", 0, "input channels; depth K of OP_MAT_MUL"),
    Register(3, "out_height", "u32", 0, "rows of the output tile; rows M of OP_MAT_MUL"),
    Register(4, "out_width", "u32", 0, "pixels of an output row"),
    Register(5, "out_channels", "u32", 0, "output channels; columns N of OP_MAT_MUL"),
    Register(6, "kernel_height", "u32", 1, "rows of the window"),
    Register(7, "kernel_width", "u32", 1, "columns of the window"),
    Register(8, "stride_height", "u32", 1, "input rows from one output row to the next"),
    Register(9, "stride_width", "u32", 1, "input pixels from one output pixel to the next"),
    Register(10, "dilation_height", "u32", 1, "input rows from one tap to the next"),
    Register(11, "dilation_width", "u32", 1, "input pixels from one tap to the next"),
    Register(12, "pad_top", "u32", 0, "rows of padding above the input tile"),
    Register(13, "pad_left", "u32", 0, "pixels of padding left of the input tile"),
    Register(14, "input_row_pitch", "u32", 0, "bytes from one input row to the next"),
    Register(15, "input_pixel_pitch", "u32", 0, "bytes from one input pixel to the next"),
    Register(16, "output_row_pitch", "u32", 0, "bytes from one int8 output row to the next"),
    Register(17, "output_pixel_pitch", "u32", 0, "bytes from one int8 output pixel to the next"),
    Register(18, "input_zero", "i8", 0, "zero point of the (first) input; the value of padding"),
    Register(19, "output_zero", "i8", 0, "zero point of the output"),
    Register(20, "clamp_low", "i8", -128, "smallest int8 result"),
    Register(21, "clamp_high", "i8", 127, "largest int8 result"),
    Register(22, "scale", "f32", 1.0, "requantisation's factor, if it isn't one per channel"),
    Register(23, "scales_address", "u32", 0, "SRAM address of out_channels float32 factors"),
    Register(24, "bias_address", "u32", 0, "SRAM address of out_channels int32 biases"),
    Register(25, "partial_address", "u32", 0, "SRAM address of the int32 partial sums, dense HWC"),
    Register(26, "other_row_pitch", "u32", 0, "bytes between rows of the second input"),
    Register(27, "other_pixel_pitch", "u32", 0, "bytes between pixels of the second input"),
    Register(28, "other_scale", "f32", 1.0, "factor of OP_E_ADD's second input; see OP_POOL too"),
    Register(29, "value_shift", "u32", 0, "what is added to int8 values: 128, they are uint8 ones"),
    Register(0, "rows", "u32", 1, "runs of bytes, from rank 2", _DMA),
    Register(1, "planes", "u32", 1, "repetitions of the rows, at rank 3", _DMA),
    Register(2, "memory_row_stride", "u32", 0, "bytes between rows in system memory", _DMA),
    Register(3, "memory_plane_stride", "u32", 0, "bytes between planes in system memory", _DMA),
    Register(4, "sram_row_stride", "u32", 0, "bytes between rows in SRAM", _DMA),
    Register(5, "sram_plane_stride", "u32", 0, "bytes between planes in SRAM", _DMA),
):
    add_register(_register)
