"""Small command streams for tests of programs and of the simulator."""

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa import Unit, instruction, set_register
from tvm_ext.codegen.program import Buffer, Program
from tvm_ext.codegen.simulator import simulate

HARDWARE = Accelerator(sram_bytes=4096)
CONSTANTS = bytes(range(256)) * 4


def program(*items, accelerator=HARDWARE, memory_bytes=4096, constants=CONSTANTS, **parts):
    """A program of these instructions and OP_END; what isn't constant is one output."""
    parts.setdefault(
        "buffers",
        (Buffer("y", "output", len(constants), (memory_bytes - len(constants),), "int8"),),
    )
    return Program(
        accelerator.variant, (*items, instruction("OP_END")), memory_bytes, constants, **parts
    )


def run(*items, accelerator=HARDWARE, **parts):
    """Simulate these instructions; the result, and system memory afterwards."""
    options = {name: parts.pop(name) for name in ("cycle_budget", "arithmetic") if name in parts}
    made = program(*items, accelerator=accelerator, **parts)
    memory = made.memory_image({})
    return simulate(made, accelerator, memory, **options), memory


def read(sram=0, size=64, memory=0, **tokens):
    """OP_DMA_READ of one row."""
    return instruction("OP_DMA_READ", memory=memory, sram=sram, bytes=size, rank=1, **tokens)


def write(sram=0, size=64, memory=1024, **tokens):
    """OP_DMA_WRITE of one row."""
    return instruction("OP_DMA_WRITE", memory=memory, sram=sram, bytes=size, rank=1, **tokens)


def shape(height, width, channels):
    """OP_SETs for elementwise instructions on a dense box."""
    row = width * channels
    values = {
        "out_height": height, "out_width": width, "out_channels": channels,
        "input_row_pitch": row, "input_pixel_pitch": channels, "output_row_pitch": row,
        "output_pixel_pitch": channels,
    }  # fmt: skip
    return [set_register(Unit.COMPUTE, name, value) for name, value in values.items()]


def relu(source=0, target=0, **tokens):
    """OP_ACT_RELU."""
    return instruction("OP_ACT_RELU", input=source, output=target, **tokens)


def events(result, unit):
    """(pc, start, end) of a unit's instructions."""
    mine = result.events.unit == unit
    columns = (result.events.pc, result.events.start, result.events.end)
    return list(zip(*(column[mine].tolist() for column in columns), strict=True))


def of_pc(result, pc):
    """One instruction's place in the events."""
    return int(np.flatnonzero(result.events.pc == pc)[0])
