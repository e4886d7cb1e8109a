"""A growing program: numbers, names, and buffers that move into a joint one."""

from __future__ import annotations

import numpy as np
import pytest
from tvm.script import tirx as T

from tvm_ext.program import Call
from tvm_ext.program_builder import ProgramBuilder


@T.prim_func
def _nothing(a: T.Buffer((1,), "float32")) -> None:
    T.evaluate(0)


def _written(builder: ProgramBuilder, size: int) -> int:
    number = builder.buffer((size,), "float32")
    builder.call("k", [number], 1, "l")
    return number


def test_numbers_lead_to_what_was_added() -> None:
    builder = ProgramBuilder()
    x = builder.input("x", (2, 3), "int64")
    constant = builder.constant(np.eye(3, dtype="float32").T[:2])
    assert builder.program.inputs == {"x": x}
    kinds = [(b.kind, b.shape, b.dtype) for b in builder.program.buffers]
    assert kinds == [("input", (2, 3), "int64"), ("constant", (2, 3), "float32")]
    assert builder.constants[constant].flags.c_contiguous
    assert np.array_equal(builder.constants[constant], [[1, 0, 0], [0, 1, 0]])


def test_a_constant_without_dimensions_stays_one() -> None:
    builder = ProgramBuilder()
    number = builder.constant(np.array(2.5, "float32"))
    assert builder.program.buffers[number].shape == ()
    assert builder.constants[number].shape == ()


def test_the_same_shape_is_no_new_view() -> None:
    builder = ProgramBuilder()
    whole = builder.buffer((64, 4), "float32")
    assert builder.view(whole, (64, 4)) == whole
    assert builder.view(whole, (256,)) != whole


def test_kernels_of_one_prefix_have_names_of_their_own() -> None:
    builder = ProgramBuilder()
    names = [builder.kernel("k", _nothing) for _ in range(2)]
    assert len(set(names)) == 2
    assert [str(builder.kernels[n].attrs["global_symbol"]) for n in names] == names


def test_calls_in_order() -> None:
    builder = ProgramBuilder()
    a, b = builder.input("a", (1,), "float32"), builder.buffer((1,), "float32")
    builder.call("k", [a, b], 1, "first")
    builder.call("sort", [b, a], 1, "second", packed=True)
    assert builder.program.calls == [
        Call("k", (a, b), 1, "first"),
        Call("sort", (b, a), 1, "second", packed=True),
    ]


def _joined(builder: ProgramBuilder, parts: list[int], size: int) -> int:
    """The buffer of parts that can all move."""
    joined = builder.join(parts, (size,), "float32")
    assert joined is not None
    assert not joined[1]
    return joined[0]


def test_join_lays_parts_one_after_the_other() -> None:
    builder = ProgramBuilder()
    parts = [_written(builder, size) for size in (16, 32, 5)]
    whole = _joined(builder, parts, 53)
    assert [builder.program.root(p) for p in parts] == [(whole, 0), (whole, 64), (whole, 192)]
    # The join counts as written: it can be a part of another one.
    _joined(builder, [_written(builder, 4)], 4)
    again = _joined(builder, [whole], 53)
    assert builder.program.root(parts[2]) == (again, 192)


def test_views_of_all_of_a_buffer_move_with_it() -> None:
    builder = ProgramBuilder()
    first, second = _written(builder, 16), _written(builder, 16)
    view = builder.view(builder.view(second, (4, 4)), (2, 8))
    whole = _joined(builder, [first, view], 32)
    assert builder.program.root(second) == builder.program.root(view) == (whole, 64)


_STAY = {
    "input": lambda b, good: b.input("x", (16,), "float32"),
    "constant": lambda b, good: b.constant(np.zeros(16, "float32")),
    "unwritten": lambda b, good: b.buffer((16,), "float32"),
    "part": lambda b, good: b.view(_written(b, 32), (16,)),
    "twice": lambda b, good: good,
    "joined": lambda b, good: _joined_part(b),
}


def _joined_part(builder: ProgramBuilder) -> int:
    part = _written(builder, 16)
    _joined(builder, [part, _written(builder, 16)], 32)
    return part


@pytest.mark.parametrize("case", _STAY)
def test_one_part_that_cannot_move_is_to_be_copied(case: str) -> None:
    builder = ProgramBuilder()
    good = _written(builder, 16)
    other = _STAY[case](builder, good)
    root = builder.program.root(other)
    joined = builder.join([other, good], (32,), "float32")
    assert joined is not None
    whole, ((part, place),) = joined
    assert part == other
    assert builder.program.root(good) == (whole, 64)
    assert builder.program.root(place) == (whole, 0)
    assert builder.program.buffers[place].nbytes == 64
    if case != "twice":
        assert builder.program.root(other) == root


@pytest.mark.parametrize("sizes", [(15, 16), (16, 16, 16)])
def test_parts_that_are_not_joined(sizes: tuple[int, ...]) -> None:
    """What would start where kernels can't read, and more than one that has to be copied."""
    builder = ProgramBuilder()
    parts = [_written(builder, sizes[0]), *(builder.buffer((s,), "float32") for s in sizes[1:])]
    before = len(builder.program.buffers)
    assert builder.join(parts, (sum(sizes),), "float32") is None
    assert len(builder.program.buffers) == before
