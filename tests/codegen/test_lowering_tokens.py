"""Tokens between units, and the planner's clock."""

from __future__ import annotations

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa import Unit, instruction
from tvm_ext.codegen.lowering.stream import Copy, Stream
from tvm_ext.codegen.lowering.timing import stream_cycles
from tvm_ext.codegen.lowering.tokens import edges_of, with_tokens
from tvm_ext.codegen.program import Buffer, Program
from tvm_ext.codegen.simulator import simulate

HARDWARE = Accelerator(sram_bytes=4096)


def row(memory: int, sram: int) -> Copy:
    return Copy(memory, sram, (1, 1, 64), (0, 0), (0, 0))


def relu(stream: Stream, source: int, target: int) -> None:
    shape = {
        "out_height": 1, "out_width": 1, "out_channels": 64, "input_row_pitch": 64,
        "input_pixel_pitch": 64, "output_row_pitch": 64, "output_pixel_pitch": 64,
    }  # fmt: skip
    stream.add("OP_ACT_RELU", {"input": source, "output": target}, shape, 0)


def alternating(tiles: int) -> Stream:
    """Load, compute and store so many tiles through two buffers each."""
    stream = Stream(HARDWARE)
    for tile in range(tiles):
        source, target = 64 * (tile % 2), 128 + 64 * (tile % 2)
        stream.read(row(64 * tile, source), 0)
        relu(stream, source, target)
        stream.write(row(1024 + 64 * tile, target), 0)
    return stream


def test_two_buffers_wait_for_what_used_them_before() -> None:
    """By hand: tile n is computed when loaded; loads wait for the computation two tiles back."""
    steps = alternating(4).steps
    edges = edges_of(steps, serial=False)
    work = [i for i, step in enumerate(steps) if step.writes]
    load, compute, store = work[0::3], work[1::3], work[2::3]
    assert [edges[i] for i in load] == [(), (), (compute[0],), (compute[1],)]
    assert [edges[i] for i in compute] == [
        (load[0],), (load[1],), (load[2], store[0]), (load[3], store[1]),
    ]  # fmt: skip
    assert [edges[i] for i in store] == [(i,) for i in compute]


def test_tokens_pair_up_and_the_planner_agrees_with_the_simulator() -> None:
    for serial in (False, True):
        steps = alternating(6).steps
        edges = edges_of(steps, serial)
        items = with_tokens(steps, edges)
        for unit in Unit:
            for flag, partner in (("push_next", "pop_prev"), ("push_prev", "pop_next")):
                other = unit.next if flag == "push_next" else unit.previous
                pushed = sum(getattr(i, flag) for i in items if i.unit is unit)
                assert pushed == sum(getattr(i, partner) for i in items if i.unit is other)
        program = Program(
            HARDWARE.variant, (*items, instruction("OP_END")), 2048,
            buffers=(Buffer("x", "input", 0, (1024,), "int8"),
                     Buffer("y", "output", 1024, (1024,), "int8")),
        )  # fmt: skip
        import numpy as np

        memory = program.memory_image({"x": np.zeros(1024, "int8")})
        assert simulate(program, HARDWARE, memory).cycles == stream_cycles(steps, edges)


def test_serial_streams_wait_for_every_change_of_unit() -> None:
    steps = alternating(3).steps
    edges = edges_of(steps, serial=True)
    for index in range(1, len(steps)):
        changes = steps[index].unit is not steps[index - 1].unit
        assert edges[index] == ((index - 1,) if changes else ())


def test_a_load_waits_for_the_store_of_the_same_memory() -> None:
    stream = Stream(HARDWARE)
    stream.read(row(0, 0), 0)
    stream.write(row(256, 0), 0)
    stream.read(row(256, 512), 0)
    assert edges_of(stream.steps, serial=False) == [(), (0,), (1,)]


def test_copies_take_as_few_dimensions_as_they_need() -> None:
    stream = Stream(HARDWARE)
    stream.read(Copy(0, 0, (4, 8, 4), (32, 4), (32, 4)), 0)
    stream.read(Copy(0, 0, (4, 8, 4), (64, 4), (32, 4)), 0)
    stream.read(Copy(0, 0, (4, 8, 4), (64, 8), (32, 4)), 0)
    ranks = [s.instruction.fields["rank"] for s in stream.steps if s.writes]
    sizes = [s.instruction.fields["bytes"] for s in stream.steps if s.writes]
    assert ranks == [1, 2, 2]
    assert sizes == [128, 32, 4]
    assert all(step.writes[0].nbytes == 128 for step in stream.steps if step.writes)
