"""Memory planning: what lives at the same time never shares a byte."""

from __future__ import annotations

import json
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_ext.program import ALIGNMENT, Program, aligned, itemsize, plan_memory
from tvm_ext.program_builder import ProgramBuilder


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A random chain of calls that read earlier buffers, or parts of them, and write new ones."""
    builder = ProgramBuilder()
    sizes = st.integers(1, 200)
    readable = []
    for i in range(draw(st.integers(1, 3))):
        readable.append(builder.input(f"in{i}", (draw(sizes),), "float32"))
    readable.append(builder.buffer((draw(sizes),), "float32", "constant"))
    for step in range(draw(st.integers(0, 12))):
        reads = draw(st.lists(st.sampled_from(readable), min_size=1, max_size=3))
        size = draw(sizes)
        whole = written = builder.buffer((size,), "float32")
        if draw(st.booleans()):
            written = builder.view(whole, (max(size // 2, 1),))
        builder.call("k", [*reads, written], 1, f"layer{step}")
        readable += {whole, written}
    outputs = draw(st.lists(st.sampled_from(readable), min_size=1, max_size=3, unique=True))
    builder.program.outputs = {f"out{i}": number for i, number in enumerate(outputs)}
    return builder.program


def _lives(program: Program) -> dict[int, tuple[int, int]]:
    """First and last step of every owning buffer, told by stepping through the program."""
    events: dict[int, list[int]] = {}
    for number in program.inputs.values():
        events.setdefault(program.root(number)[0], []).append(-1)
    for step, call in enumerate(program.calls):
        for number in call.args:
            events.setdefault(program.root(number)[0], []).append(step)
    for number in program.outputs.values():
        events.setdefault(program.root(number)[0], []).append(len(program.calls))
    return {n: (min(steps), max(steps)) for n, steps in events.items()}


@settings(max_examples=150, deadline=None)
@given(programs())
def test_no_two_live_buffers_overlap(program: Program) -> None:
    plan_memory(program)
    lives = _lives(program)
    used = [n for n in lives if program.buffers[n].kind != "constant"]
    for a, b in combinations(used, 2):
        (first_a, last_a), (first_b, last_b) = lives[a], lives[b]
        if first_a <= last_b and first_b <= last_a:
            low, high = sorted((a, b), key=lambda n: program.buffers[n].offset)
            end = program.buffers[low].offset + program.buffers[low].nbytes
            assert end <= program.buffers[high].offset
    for number in used:
        buffer = program.buffers[number]
        assert buffer.offset % ALIGNMENT == 0
        assert buffer.offset + buffer.nbytes <= program.arena_bytes
    constants = [b for b in program.buffers if b.kind == "constant" and b.parent is None]
    for one, other in combinations(sorted(constants, key=lambda b: b.offset), 2):
        assert one.offset + one.nbytes <= other.offset
    assert all(b.offset + b.nbytes <= program.constant_bytes for b in constants)


@settings(max_examples=50, deadline=None)
@given(programs())
def test_json_round_trip(program: Program) -> None:
    plan_memory(program)
    assert Program.from_json(json.loads(json.dumps(program.to_json()))) == program


def test_a_chain_needs_two_buffers() -> None:
    """x -> a -> b -> c: a and c share, worked by hand."""
    builder = ProgramBuilder()
    numbers = [builder.input("x", (100,), "float32")]
    numbers += [builder.buffer((100,), "float32") for _ in range(3)]
    for pair in pairwise(numbers):
        builder.call("k", pair, 1, "l")
    builder.program.outputs = {"y": numbers[3]}
    plan_memory(builder.program)
    assert builder.program.arena_bytes == 3 * 448 - 448
    assert aligned(400) == 448


def test_views_add_their_offsets() -> None:
    builder = ProgramBuilder()
    program = builder.program
    whole = builder.buffer((64, 4), "float32")
    half = builder.view(whole, (32, 4), offset=512)
    quarter = builder.view(half, (16, 4), offset=256)
    assert program.root(quarter) == (whole, 768)
    program.buffers[whole].offset = 64
    assert program.place(quarter) == ("arena", 832)


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "float16"])
def test_itemsize(dtype: str) -> None:
    assert itemsize(dtype) == np.dtype(dtype).itemsize


def test_bool_is_a_byte() -> None:
    assert itemsize("bool") == 1
