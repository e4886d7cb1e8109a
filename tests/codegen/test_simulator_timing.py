"""Cycles of whole programs: worked by hand, with waits by cause, layers, bytes and energy."""

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.streams import HARDWARE, events, of_pc, program, read, relu, run, shape, write
from tvm_ext.codegen.isa import Unit, set_register
from tvm_ext.codegen.program import Layer
from tvm_ext.codegen.simulator import simulate
from tvm_ext.codegen.simulator.result import UNTAGGED

# 320 values: relu takes 8 + ceil(320 / 64) = 13 cycles, a load of 320 bytes 64 + 20 = 84.
SHAPE = shape(1, 5, 64)
PIPELINE = [
    read(0, 320, push_next=True),  # pc 0
    read(320, 320, push_next=True),  # pc 1
    *SHAPE,  # pc 2 to 8
    relu(0, 640, pop_prev=True, push_next=True),  # pc 9
    relu(320, 960, pop_prev=True, push_next=True),  # pc 10
    write(640, 320, 1024, pop_prev=True),  # pc 11
    write(960, 320, 1344, pop_prev=True),  # pc 12
]
LAYERS = (Layer("a", "ACT"), Layer("b", "ACT"), Layer("c", "MOVE"))
TAGS = (0, 2, *[0] * 8, 1, 2, 2, -1)


def test_a_pipeline_by_hand():
    result, _ = run(*PIPELINE)
    # The second load starts when the first has ended; the second relu waits for it.
    assert events(result, Unit.LOAD) == [(0, 0, 84), (1, 84, 168)]
    compute = events(result, Unit.COMPUTE)
    assert compute[:7] == [(pc, pc - 2, pc - 1) for pc in range(2, 9)]
    assert compute[7:] == [(9, 84, 97), (10, 168, 181), (13, 181, 181)]
    # The first store asks for the bus in cycle 97 + 64 = 161 while the second load has it up to
    # cycle 168, so it ends in 168 + 20.
    assert events(result, Unit.STORE) == [(11, 97, 188), (12, 188, 272)]
    assert result.cycles == 272


def test_waits_by_cause():
    result, _ = run(*PIPELINE)
    assert result.unit_cycles() == {
        Unit.LOAD: {
            "busy": 168, "bus": 0, "wait for store": 0, "wait for compute": 0, "ended": 104,
        },
        Unit.COMPUTE: {
            # 7 OP_SETs and two relus; 84 - 7 and 168 - 97 cycles for the loads.
            "busy": 33, "bus": 0, "wait for load": 148, "wait for store": 0, "ended": 91,
        },
        Unit.STORE: {
            "busy": 168, "bus": 7, "wait for compute": 97, "wait for load": 0, "ended": 0,
        },
    }  # fmt: skip
    place = of_pc(result, 10)
    assert (result.events.wait[place], result.events.wait_for[place]) == (71, Unit.LOAD)
    assert result.events.bus_wait[of_pc(result, 11)] == 7


def test_the_unit_that_asks_first_has_the_bus():
    items = [
        read(0, 64, push_next=True, push_prev=True),  # pc 0, ends in cycle 68
        set_register(Unit.COMPUTE, "scale", 1.0, pop_prev=True, push_next=True),  # pc 1, in 69
        read(64, 160),  # pc 2, asks in cycle 68 + 64 = 132, has the bus up to 142
        write(0, 32, pop_prev=True),  # pc 3, asks in 69 + 64 = 133, has the bus from 142 to 144
        read(224, 16),  # pc 4, asks in 142 + 64
    ]
    result, _ = run(*items)
    assert events(result, Unit.LOAD) == [(0, 0, 68), (2, 68, 142), (4, 142, 207)]
    assert events(result, Unit.STORE) == [(3, 69, 144)]
    assert result.events.bus_wait[of_pc(result, 3)] == 9


def test_layers_and_kinds():
    made = program(*PIPELINE, layers=LAYERS, tags=TAGS)
    result = simulate(made, HARDWARE, made.memory_image({}))
    # a: up to the end of the first relu; b: up to that of the second; c: the last store.
    assert result.cycles_by_layer() == {LAYERS[0]: 97, LAYERS[1]: 84, LAYERS[2]: 91}
    assert result.cycles_by_kind() == {"ACT": 181, "MOVE": 91}
    assert result.cycles_by_instruction() == {
        "OP_DMA_READ": 168, "OP_DMA_WRITE": 168, "OP_SET": 7, "OP_ACT_RELU": 26, "OP_END": 0,
    }  # fmt: skip
    assert result.macs_by_layer() == {}
    untagged = run(*PIPELINE)[0]
    assert untagged.cycles_by_layer() == {UNTAGGED: 272}
    assert untagged.cycles_by_kind() == {"OTHER": 272}


def test_bytes_seconds_and_energy():
    hardware = replace(
        HARDWARE, clock_hz=1e6, energy_per_mac_pj=1000.0, energy_per_sram_byte_pj=2.0,
        energy_per_dram_byte_pj=50.0,
    )  # fmt: skip
    result, _ = run(*PIPELINE, accelerator=hardware)
    assert (result.dma_read_bytes, result.dma_write_bytes) == (640, 640)
    # Two loads and two stores of 320 bytes, two relus that read and write as many.
    assert result.sram_bytes == 4 * 320 + 2 * 640
    assert result.energy_pj == 2560 * 2.0 + 1280 * 50.0
    assert result.seconds == pytest.approx(272e-6, rel=1e-12)
    assert (result.macs, result.utilization) == (0, 0.0)


def test_leftover_tokens():
    result, _ = run(read(push_next=True, push_prev=True), read(push_next=True))
    assert result.leftover_tokens == {"load -> compute": 2, "load -> store": 1}


def test_the_same_every_time_and_without_values():
    first, memory = run(*PIPELINE)
    again, same_memory = run(*PIPELINE)
    quick, untouched = run(*PIPELINE, arithmetic=False)
    np.testing.assert_array_equal(memory, same_memory)
    assert memory[1024:1664].any()
    assert not untouched[1024:].any()
    for other in (again, quick):
        assert other.cycles == first.cycles
        for name, column in vars(first.events).items():
            np.testing.assert_array_equal(getattr(other.events, name), column)
