"""Random convolutions in tiles of rows on random hardware: values, bounds and sums."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa import Unit, instruction, set_register
from tvm_ext.codegen.program import Buffer, Program
from tvm_ext.codegen.simulator import simulate


@st.composite
def accelerators(draw):
    groups = draw(st.sampled_from([1, 2, 4]))
    return Accelerator(
        pes=groups * draw(st.integers(1, 40)),
        pixel_parallel=groups,
        sram_bytes=1 << 16,
        parallel=draw(st.sampled_from(["output", "input"])),
        dma_bytes_per_cycle=draw(st.integers(1, 40)),
        dma_latency_cycles=draw(st.integers(0, 200)),
        fill_cycles=draw(st.integers(0, 20)),
    )


@st.composite
def convolutions(draw):
    """Rows of a tile, tiles, width, depth, filters, kernel, two buffers or one."""
    sizes = [draw(st.integers(1, high)) for high in (3, 4, 9, 40, 40)]
    return (*sizes, draw(st.sampled_from([1, 3])), draw(st.booleans()))


def tiled(case, accelerator, seed=0):
    """A program without padding that computes `rows` output rows a tile, int32."""
    rows, tiles, width, depth, filters, kernel, double = case
    rng = np.random.default_rng(seed)
    image = rng.integers(-128, 128, (rows * tiles + kernel - 1, width + kernel - 1, depth))
    weights = rng.integers(-128, 128, (filters, kernel, kernel, depth))
    constants = weights.astype(np.int8).tobytes()
    x = Buffer("x", "input", len(constants), image.shape, "int8")
    y = Buffer("y", "output", (x.end + 3) // 4 * 4, (rows * tiles, width, filters), "int32")
    row = image.shape[1] * depth
    tile_in, tile_out = (rows + kernel - 1) * row, rows * width * filters * 4
    first_in = (len(constants) + 3) // 4 * 4
    size = (tile_in + 3) // 4 * 4
    values = {
        "in_height": rows + kernel - 1, "in_width": image.shape[1], "in_channels": depth,
        "out_height": rows, "out_width": width, "out_channels": filters, "kernel_height": kernel,
        "kernel_width": kernel, "input_row_pitch": row, "input_pixel_pitch": depth,
    }  # fmt: skip
    items = [
        instruction("OP_DMA_READ", bytes=len(constants), rank=1),
        *(set_register(Unit.COMPUTE, name, value) for name, value in values.items()),
    ]
    buffers = 2 if double else 1
    for tile in range(tiles):
        place, used = tile % buffers, tile >= buffers
        source = first_in + place * size
        target = first_in + buffers * size + place * tile_out
        items += [
            instruction(
                "OP_DMA_READ", memory=x.address + tile * rows * row, sram=source, bytes=tile_in,
                rank=1, pop_next=used, push_next=True,
            ),
            instruction(
                "OP_CONV", input=source, output=target, wide=1, pop_prev=True, pop_next=used,
                push_prev=True, push_next=True,
            ),
            instruction(
                "OP_DMA_WRITE", sram=target, memory=y.address + tile * tile_out, bytes=tile_out,
                rank=1, pop_prev=True, push_prev=True,
            ),
        ]  # fmt: skip
    items.append(instruction("OP_END"))
    program = Program(accelerator.variant, tuple(items), y.end, constants, (x, y))
    expected = np.zeros(y.shape, np.int64)
    for i in range(kernel):
        for j in range(kernel):
            part = image[i : i + rows * tiles, j : j + width]
            expected += np.einsum("yxk,ck->yxc", part, weights[:, i, j])
    return program, {"x": image.astype(np.int8)}, expected


@given(accelerators(), convolutions())
@settings(max_examples=60, deadline=None)
def test_values_and_bounds(accelerator, case):
    program, inputs, expected = tiled(case, accelerator)
    memory = program.memory_image(inputs)
    result = simulate(program, accelerator, memory)
    np.testing.assert_array_equal(program.outputs(memory)["y"], expected)
    taps = case[5] ** 2
    assert result.macs == expected.size * taps * case[3]
    moved = result.dma_read_bytes + result.dma_write_bytes
    assert result.cycles * accelerator.pes >= result.macs
    assert result.cycles * accelerator.dma_bytes_per_cycle >= moved
    assert 0 < result.utilization <= 1
    for causes in result.unit_cycles().values():
        assert sum(causes.values()) == result.cycles
        assert min(causes.values()) >= 0
    assert sum(result.cycles_by_layer().values()) == result.cycles


@given(accelerators(), convolutions())
@settings(max_examples=30, deadline=None)
def test_units_do_one_thing_at_a_time_and_transfers_share_the_bus(accelerator, case):
    program, inputs, _ = tiled(case, accelerator)
    events = simulate(program, accelerator, program.memory_image(inputs)).events
    for unit in Unit:
        mine = events.unit == unit
        assert (events.start[mine][1:] >= events.end[mine][:-1]).all()
        assert (np.diff(events.pc[mine]) > 0).all()
    moves = np.flatnonzero(events.memory_bytes)
    beats = -(-events.memory_bytes[moves] // accelerator.dma_bytes_per_cycle)
    spans = sorted(zip(events.end[moves] - beats, events.end[moves], strict=True))
    assert all(begin >= end for (_, end), (begin, _) in pairwise(spans))


@given(convolutions())
@settings(max_examples=30, deadline=None)
def test_more_hardware_is_never_slower(case):
    small = Accelerator(pes=4, sram_bytes=1 << 16, dma_bytes_per_cycle=4)
    large = Accelerator(pes=16, sram_bytes=1 << 16, dma_bytes_per_cycle=8)
    cycles = []
    for accelerator in (small, large):
        program, inputs, _ = tiled(case, accelerator)
        cycles.append(simulate(program, accelerator, program.memory_image(inputs)).cycles)
    assert cycles[1] <= cycles[0]
