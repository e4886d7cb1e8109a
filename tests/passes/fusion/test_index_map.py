"""Which elements an output is computed from, against NumPy's own indexing of element numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import sym, te, tirx

from tvm_ext.passes.fusion.index_map import AXES, IndexMapError, reads, reads_memory, substitute

SHAPE = (4, 6)
# The elements' numbers: what an indexing of them returns says where it reads.
NUMBERS = np.arange(24).reshape(SHAPE)


def _reads(make: Callable[[Any], Any]) -> Any:
    """The alternatives of what `make` computes of one tensor of `SHAPE`."""
    x = te.placeholder(SHAPE, name="x")
    (found,) = reads(te.create_prim_func([x, make(x)])).values()
    return found


def _number(read: Any, position: tuple[int, ...]) -> int:
    """The number of the element that is read for one position of the output."""
    env = {axis: tirx.const(i, "int64") for axis, i in zip(AXES, position, strict=False)}
    analyzer = sym.Analyzer()
    place = [int(analyzer.simplify(substitute(i, env))) for i in read.indices]
    return int(NUMBERS[tuple(place)])


def _transposed(x: Any) -> Any:
    return te.compute(SHAPE[::-1], lambda i, j: x[j, i] + 1.0)


def _of(intermediate: Any, value: Callable[[Any, Any], Any]) -> Any:
    """Four elements computed from an intermediate tensor, by another block."""
    return te.compute((4,), lambda i: value(intermediate, i))


MAPS = {
    "transposed": (_transposed, NUMBERS.T),
    "reversed": (lambda x: te.compute(SHAPE, lambda i, j: x[i, 5 - j]), NUMBERS[:, ::-1]),
    "every other": (lambda x: te.compute((4, 3), lambda i, j: x[i, 2 * j + 1]), NUMBERS[:, 1::2]),
    "reshaped": (
        lambda x: te.compute((8, 3), lambda i, j: x[(i * 3 + j) // 6, (i * 3 + j) % 6]),
        NUMBERS.reshape(8, 3),
    ),
    "one column": (lambda x: te.compute((4,), lambda i: x[i, 2]), NUMBERS[:, 2]),
    # Two blocks: the first one's buffer is followed back to the parameter.
    "a row of the transposed": (
        lambda x: _of(_transposed(x), lambda t, i: t[2, i]), NUMBERS.T[2]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_one_element_is_read_where_numpy_finds_it(name: str) -> None:
    make, expected = MAPS[name]
    ((read,),) = _reads(make)
    assert not read.reduced
    for position in np.ndindex(expected.shape):
        assert _number(read, position) == expected[position]


def test_what_is_added_is_read_together_and_what_is_chosen_is_not() -> None:
    together = _reads(lambda x: te.compute((4,), lambda i: x[i, 0] + x[i, 5]))
    assert [len(alternative) for alternative in together] == [2]
    either = _reads(lambda x: te.compute((4,), lambda i: te.if_then_else(i < 2, x[i, 0], x[i, 5])))
    assert [len(alternative) for alternative in either] == [1, 1]
    assert [_number(read, (3,)) for (read,) in either] == [NUMBERS[3, 0], NUMBERS[3, 5]]


def test_the_same_element_twice_is_one_read() -> None:
    ((read,),) = _reads(lambda x: te.compute(SHAPE, lambda i, j: x[i, j] * x[i, j]))
    assert _number(read, (2, 3)) == NUMBERS[2, 3]


def test_padding_is_a_way_that_reads_nothing() -> None:
    def padded(x: Any) -> Any:
        inside = lambda i, j: tirx.all(j >= 1, j < 7)  # noqa: E731
        return te.compute(
            (4, 8), lambda i, j: te.if_then_else(inside(i, j), x[i, j - 1], tirx.const(0.0))
        )

    found = _reads(padded)
    assert sorted(len(alternative) for alternative in found) == [0, 1]
    (read,) = max(found, key=len)
    assert _number(read, (1, 3)) == np.pad(NUMBERS, [(0, 0), (1, 1)])[1, 3]


def test_a_sum_reads_many_elements_also_through_another_block() -> None:
    def total(x: Any) -> Any:
        k = te.reduce_axis((0, 6))
        return te.compute((4,), lambda i: te.sum(x[i, k], k))

    ((read,),) = _reads(total)
    assert read.reduced
    ((read,),) = _reads(lambda x: _of(total(x), lambda t, i: t[3 - i] * 2.0))
    assert read.reduced
    assert sym.Analyzer().can_prove_equal(read.indices[0], 3 - AXES[0])


def test_a_reduction_of_one_element_is_none() -> None:
    def total(x: Any) -> Any:
        k = te.reduce_axis((0, 1))
        return te.compute(SHAPE, lambda i, j: te.sum(x[i, j + k], k))

    ((read,),) = _reads(total)
    assert not read.reduced
    assert _number(read, (2, 4)) == NUMBERS[2, 4]


def test_an_index_that_is_read_from_a_tensor() -> None:
    x, at = te.placeholder(SHAPE), te.placeholder((3,), "int64")
    out = te.compute((3, 6), lambda i, j: x[at[i], j])
    ((found,),) = reads(te.create_prim_func([x, at, out])).values()
    by_parameter = {read.parameter: read for read in found}
    assert set(by_parameter) == {0, 1}
    assert reads_memory(by_parameter[0].indices[0])
    assert not reads_memory(by_parameter[1].indices[0])


def test_too_many_ways_are_refused() -> None:
    def chosen(x: Any) -> Any:
        def value(i: Any) -> Any:
            ways = [te.if_then_else(i < n, x[n % 4, i], x[i, n]) for n in range(5)]
            return sum(ways[1:], ways[0])

        return te.compute((4,), value)

    with pytest.raises(IndexMapError, match="16 alternatives"):
        _reads(chosen)


def test_what_is_not_stored_element_by_element_is_refused() -> None:
    def called(x: Any) -> Any:
        call = lambda ins, outs: tirx.call_packed("sort", ins[0], outs[0])  # noqa: E731
        return te.extern([SHAPE], [x], call, dtype="float32")

    with pytest.raises(IndexMapError, match="doesn't write one buffer once"):
        _reads(called)
