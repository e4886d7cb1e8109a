"""Boxes cut for threads and vectors: every element is covered, and none outside."""

from __future__ import annotations

import numpy as np
import pytest
from tvm.script.ir_builder import tirx as T

from tests.schedules.snippets import Snippet, run_snippets
from tvm_ext.schedules import boxes, emit

BOXES = [
    ((1,), 4, 1, 1),
    ((3,), 4, 2, 3),
    ((37,), 4, 2, 5),
    ((5, 33), 8, 4, 4),
    ((7, 3), 8, 4, 3),
    ((2, 3, 18), 8, 2, 7),
    ((4, 1, 1), 8, 8, 2),
    ((7, 2), 8, 4, 1),
]


@pytest.mark.parametrize("tasks", [1, 2, 7, 100])
@pytest.mark.parametrize(
    ("extents", "grain"), [((10,), (4,)), ((3, 50), (1, 8)), ((5, 2, 9), (1, 1, 4))]
)
def test_cut_gives_each_task_whole_grains(extents, grain, tasks):
    cuts = boxes.cut(extents, grain, tasks)
    for (count, size), extent, unit in zip(cuts, extents, grain, strict=True):
        assert size == extent or size % unit == 0
        # So many pieces cover the dimension, and one fewer would not.
        assert (count - 1) * size < extent <= count * size
    if tasks == 1:
        assert [count for count, _ in cuts] == [1] * len(extents)


def test_cut_shares_the_outermost_dimension_first():
    assert boxes.cut((8, 64), (1, 8), 4) == [(4, 2), (1, 64)]
    assert boxes.cut((2, 64), (1, 8), 4) == [(2, 1), (2, 32)]


def test_rows_shorter_than_a_vector_take_a_power_of_two():
    assert boxes.fit_vectors(37, 8, 4) == (8, 4)
    assert boxes.fit_vectors(20, 8, 4) == (8, 2)
    assert boxes.fit_vectors(7, 8, 4) == (4, 1)
    assert boxes.fit_vectors(1, 8, 4) == (1, 1)


def test_each_vector_visits_every_element_of_every_task():
    """Each visit copies one number; NaN is left where there was none."""
    snippets = {}
    for extents, width, vectors, tasks in BOXES:

        def body(numbers, out, extents=extents, width=width, vectors=vectors, tasks=tasks):
            def vector(first, count):
                with emit.loop(count, "vectorized") as lane:
                    index = [*first[:-1], first[-1] + lane]
                    T.buffer_store(out, numbers[tuple(index)], index)

            grain = (*(1,) * (len(extents) - 1), width * vectors)
            with boxes.parallel_boxes(extents, grain, tasks) as (starts, sizes):
                boxes.each_vector(starts, sizes, width, vectors, vector)

        numbers = np.arange(np.prod(extents), dtype="float32").reshape(extents)
        snippets[extents] = Snippet(body, [numbers], extents)
    for extents, got in run_snippets(snippets).items():
        np.testing.assert_array_equal(got, snippets[extents].inputs[0], err_msg=str(extents))


@pytest.mark.parametrize("columns,width,unroll", [(4, 4, 1), (23, 4, 2), (8, 4, 4), (33, 8, 4)])
def test_sweep_says_what_an_earlier_vector_has_covered(columns, width, unroll):
    """Sums over a sweep skip `done` elements, so each is added once."""

    def body(out):
        with emit.loop(columns) as i:
            T.buffer_store(out, 0.0, [i])

        def vector(slot, offset, done):
            for lane in range(done, width):
                T.buffer_store(out, out[offset + lane] + 1.0, [offset + lane])

        boxes.sweep(columns, width, unroll, vector)

    got = run_snippets({"sweep": Snippet(body, [], (columns,))})["sweep"]
    np.testing.assert_array_equal(got, np.ones(columns))
