"""Dense boxes of elements: cut in equal tasks for the threads, and in vectors for a task.

What doesn't divide is covered by a last piece that overlaps its neighbour: it ends with the
dimension and has the size of the others. So a box may be used only where computing an element
twice gives the same result, and every piece runs the same code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm_ext.schedules import cuts, emit

Index = Any


def cut(extents: Sequence[int], grain: Sequence[int], tasks: int) -> list[tuple[int, int]]:
    """For each dimension, outermost first, how many tasks share it and how much each has.

    Parameters
    ----------
    extents, grain : sequence of int
        The box, and what a task's extent must be a multiple of (unless it is the whole).
    tasks : int
        About how many tasks to make.
    """
    parts = []
    for extent, unit in zip(extents, grain, strict=True):
        size = -(-extent // tasks)
        size = min(extent, -(-size // unit) * unit)
        count = -(-extent // size)
        parts.append((count, size))
        tasks = -(-tasks // count)
    return parts


@contextlib.contextmanager
def parallel_boxes(
    extents: Sequence[int], grain: Sequence[int], tasks: int
) -> Iterator[tuple[list[Index], list[int]]]:
    """A parallel loop over the tasks of `cut`; yields the start and the size of a task's box."""
    parts = cut(extents, grain, tasks)
    with emit.parallel_tasks(*(count for count, _ in parts)) as task:
        starts = [
            cuts.panel_start(t, size, n)
            for t, (_, size), n in zip(task, parts, extents, strict=True)
        ]
        yield starts, [size for _, size in parts]


def sweep(columns: int, width: int, unroll: int, body: Callable[[Index, Index, int], None]) -> None:
    """Cover [0, columns) with vectors of `width`, `unroll` of them in one iteration.

    Calls `body(slot, offset, done)`: the vector's number in its iteration, where it starts, and
    how many of its first elements an earlier vector has covered.
    """
    count, rest = divmod(columns, unroll * width)
    with emit.loop(count) as i, emit.loop(unroll, "unroll") as u:
        body(u, (i * unroll + u) * width, 0)
    for u in range(-(-rest // width)):
        start = columns - rest + u * width
        offset = min(start, columns - width)
        body(u, offset, start - offset)


def fit_vectors(columns: int, width: int, vectors: int) -> tuple[int, int]:
    """The vector width and how many of them one iteration takes, for a row of `columns`.

    A row shorter than a vector takes the widest power of two that fits.
    """
    width = min(width, 1 << (columns.bit_length() - 1))
    return width, min(vectors, columns // width)


def each_vector(
    starts: Sequence[Index],
    sizes: Sequence[int],
    width: int,
    vectors: int,
    body: Callable[[list[Index], int], None],
) -> None:
    """Loops over a box, vectorised along its last dimension.

    `body(index, width)` is for a vector of `width` elements that starts at `index`.
    One iteration has about `vectors` vectors, of several rows where rows are short.
    """
    *outer, row = sizes
    width, unroll = fit_vectors(row, width, vectors)
    rows = outer[-1] if outer else 1
    together = min(rows, max(1, vectors * width // row))

    def columns(index: list[Index]) -> None:
        def vector(slot: Index, offset: Index, done: int) -> None:
            body([*index, starts[-1] + offset], width)

        sweep(row, width, unroll, vector)

    with emit.nest(outer[:-1]) as at:
        index = [start + i for start, i in zip(starts, at, strict=False)]
        if not outer:
            columns([])
            return
        with emit.loop(rows // together) as r, emit.loop(together, "unroll") as u:
            columns([*index, starts[-2] + r * together + u])
        if rows % together:
            with emit.loop(rows % together) as u:
                columns([*index, starts[-2] + rows - rows % together + u])
