"""One instruction on a machine whose whole SRAM is loaded before and stored behind it."""

from dataclasses import replace

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa import Unit, instruction, set_register
from tvm_ext.codegen.program import Buffer, Program
from tvm_ext.codegen.simulator import simulate

HARDWARE = Accelerator()
"""64 lanes, fill 8, a bus of 16 bytes, latency 64: the numbers of the worked examples."""
INPUT_PARALLEL = Accelerator(parallel="input")
PIXEL_PARALLEL = Accelerator(pixel_parallel=4)


class Sram:
    """A small SRAM image that a test fills; 16-byte aligned places."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.data = self.rng.integers(0, 256, 1 << 16).astype(np.uint8)
        self.end = 16

    def place(self, array):
        """Put an array, give its address."""
        raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        return self._put(raw)

    def place_image(self, image, row_gap=0, pixel_gap=0):
        """Put an (h, w, c) int8 image with gaps; give its address and pitches."""
        height, width, channels = image.shape
        pixel = channels + pixel_gap
        row = width * pixel + row_gap
        address = self.space(height * row)
        for y in range(height):
            for x in range(width):
                begin = address + y * row + x * pixel
                self.data[begin : begin + channels] = image[y, x].view(np.uint8)
        return address, row, pixel

    def space(self, size):
        """Keep room, give its address."""
        address, self.end = self.end, -(-(self.end + size) // 16) * 16
        assert self.end <= len(self.data)
        return address

    def int8(self, *shape, low=-128, high=127):
        """Random int8 values."""
        return self.rng.integers(low, high + 1, shape).astype(np.int8)

    def _put(self, raw):
        address = self.space(len(raw))
        self.data[address : address + len(raw)] = raw
        return address


def run(sram, mnemonic, fields, registers, accelerator=HARDWARE):
    """Run one instruction; the SRAM afterwards as uint8, and what it cost.

    The cost is (cycles, macs).
    """
    size = len(sram.data)
    accelerator = replace(accelerator, sram_bytes=size)
    configure = [set_register(Unit.COMPUTE, name, value) for name, value in registers.items()]
    program = Program(
        accelerator.variant,
        (
            instruction("OP_DMA_READ", bytes=size, rank=1, push_next=True),
            *configure,
            instruction(mnemonic, pop_prev=True, push_next=True, **fields),
            instruction("OP_DMA_WRITE", memory=size, bytes=size, rank=1, pop_prev=True),
            instruction("OP_END"),
        ),
        2 * size,
        sram.data.tobytes(),
        (Buffer("sram", "output", size, (size,), "int8"),),
    )
    memory = program.memory_image({})
    result = simulate(program, accelerator, memory)
    place = int(np.flatnonzero(result.events.pc == len(configure) + 1)[0])
    cycles = int(result.events.end[place] - result.events.start[place])
    return memory[size:], (cycles, int(result.events.macs[place]))


def image_at(sram, address, shape, row_pitch, pixel_pitch):
    """The (h, w, c) int8 values of a box, gathered one by one."""
    values = [
        sram[address + y * row_pitch + x * pixel_pitch + c]
        for y in range(shape[0])
        for x in range(shape[1])
        for c in range(shape[2])
    ]
    return np.array(values, np.uint8).view(np.int8).reshape(shape)


def wide_at(sram, address, shape):
    """The dense int32 values at an address."""
    count = int(np.prod(shape))
    return np.frombuffer(sram[address : address + 4 * count].tobytes(), "<i4").reshape(shape)


def untouched(before, after, address, shape, row_pitch, pixel_pitch):
    """Whether nothing but the bytes of one box changed."""
    same = before.copy()
    for y in range(shape[0]):
        for x in range(shape[1]):
            begin = address + y * row_pitch + x * pixel_pitch
            same[begin : begin + shape[2]] = after[begin : begin + shape[2]]
    return bool((same == after).all())
