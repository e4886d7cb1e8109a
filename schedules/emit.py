"""Building blocks of hand-written kernels: arguments and memory, loops, register tiles, prefetches.

Kernels are TensorIR built with TVM's `IRBuilder`. That is the place of both TE compute and
schedule here, because tiles of two widths, staged inputs and overlapped panels can't be written as
one TE expression.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

# Below this size TVM allocates a buffer of scope global on the stack.
STACK_BYTES = 1024
LINE_BYTES = 64
# Inner iterations a line of weights beyond which its first read is hidden without help.
_PREFETCH_REUSE = 24
Index = Any  # an int or an integer expression


def build(body: Callable[[], None]) -> tirx.PrimFunc:
    """Run `body` inside a function scope and return the finished PrimFunc."""
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        T.func_attr({"tirx.noalias": True, "global_symbol": "main"})
        body()
    return builder.get()


def argument(name: str, shape: Sequence[int], dtype: str = "float32") -> Any:
    """Declare the next tensor argument."""
    return T.arg(name, T.buffer(tuple(shape), dtype))


def workspace(shape: Sequence[int], dtype: str = "float32") -> Any:
    """Scratch memory of the enclosing scope, from TVM's pool of the current thread."""
    return T.alloc_buffer(tuple(shape), dtype, scope="global")


def spread_rows(rows: int, floats: int) -> Any:
    """Scratch rows of at least `floats`, an odd number of cache lines apart.

    A kernel that walks over the rows at one position then touches different sets of its caches.
    """
    line = LINE_BYTES // 4
    return workspace((rows, (-(-floats // line) | 1) * line))


@contextlib.contextmanager
def loop(extent: int, kind: str = "serial") -> Iterator[Index]:
    """A loop over [0, extent); one trip makes no loop."""
    if isinstance(extent, int) and extent == 1:
        yield 0
        return
    with getattr(T, kind)(0, extent) as i:
        yield i


@contextlib.contextmanager
def parallel_tasks(*extents: int) -> Iterator[tuple[Index, ...]]:
    """One parallel loop over the product of `extents`; yields their indices, first outermost."""
    total = 1
    for extent in extents:
        total *= extent
    with loop(total, "parallel") as task:
        indices: list[Index] = []
        rest = task
        for extent in reversed(extents):
            indices.append(0 if extent == 1 else (rest % extent if extent != total else rest))
            rest = rest // extent if extent != 1 else rest
        # Bound to variables, lest TVM simplify the divisions anew at every use.
        bound = [i if isinstance(i, int) or i is task else T.Bind(i) for i in indices]
        yield tuple(reversed(bound))


class RegisterTile:
    """rows x columns vector accumulators that LLVM keeps in registers.

    Every index is a constant once the loops are unrolled, which is what lets it promote the array.
    Rows go with the broadcast side, columns with the vector side.
    """

    def __init__(self, rows: int, columns: int, lanes: int) -> None:
        self.rows, self.columns, self.lanes = rows, columns, lanes
        # TVM puts a buffer on the stack, from where LLVM can promote it, only below 1 KB and with
        # this scope: a pointer into TVM's workspace pool would stay in memory. A tile that doesn't
        # fit takes a buffer for each row.
        self._whole = rows * columns * lanes * 4 < STACK_BYTES
        count, size = (1, rows) if self._whole else (rows, 1)
        self._buffers = [
            T.alloc_buffer((size * columns * lanes,), "float32", scope="global")
            for _ in range(count)
        ]

    def each(self, body: Callable[[Index, Index, Index], None], by_columns: bool = False) -> None:
        """Call `body(row, column, lane)` in unrolled and vectorised loops, row by row or not."""
        extents = (self.columns, self.rows) if by_columns else (self.rows, self.columns)
        if self._whole:
            with nest(extents, "unroll") as at, T.vectorized(0, self.lanes) as lane:
                body(*(reversed(at) if by_columns else at), lane)
            return
        for outer in range(extents[0]):
            for inner in range(extents[1]):
                with T.vectorized(0, self.lanes) as lane:
                    body(*((inner, outer) if by_columns else (outer, inner)), lane)

    def _at(self, row: Index, column: Index, lane: Index) -> tuple[Any, Index]:
        if self._whole:
            return self._buffers[0], (row * self.columns + column) * self.lanes + lane
        return self._buffers[row], column * self.lanes + lane

    def get(self, row: Index, column: Index, lane: Index) -> tirx.Expr:
        """The value of one element."""
        buffer, at = self._at(row, column, lane)
        return buffer[at]

    def fill(
        self, value: Callable[[Index, Index, Index], tirx.Expr], by_columns: bool = False
    ) -> None:
        """Set every element."""

        def body(row: Index, column: Index, lane: Index) -> None:
            buffer, at = self._at(row, column, lane)
            T.buffer_store(buffer, value(row, column, lane), [at])

        self.each(body, by_columns)

    def zero(self) -> None:
        self.fill(lambda row, column, lane: tirx.const(0.0, "float32"))

    def multiply_add(
        self,
        left: Callable[[Index], tirx.Expr],
        right: Callable[[Index, Index], tirx.Expr],
        by_columns: bool = False,
    ) -> None:
        """Add left(row) * right(column, lane): one FMA for each vector.

        Row by row, all of a step's right sides are in registers; by columns, all left ones.
        """
        self.fill(lambda r, c, lane: self.get(r, c, lane) + left(r) * right(c, lane), by_columns)


def flat_index(indices: Sequence[Index], extents: Sequence[int]) -> Index:
    """Row-major number of a position in a nest of loops."""
    flat: Index = 0
    for index, extent in zip(indices, extents, strict=True):
        flat = flat * extent + index
    return flat


def view(buffer: Any, shape: Sequence[int], dtype: str = "float32") -> Any:
    """An argument's memory under another shape.

    Not for scratch memory: TVM doesn't see its uses through a view, and may give it to another
    buffer in the meantime.
    """
    return T.decl_buffer(tuple(shape), dtype, data=tirx.buffer_data(buffer))


@contextlib.contextmanager
def nest(extents: Sequence[int], kind: str = "serial") -> Iterator[tuple[Index, ...]]:
    """Nested loops, first extent outermost; yields their indices."""
    with contextlib.ExitStack() as stack:
        yield tuple(stack.enter_context(loop(extent, kind)) for extent in extents)


def prefetch(buffer: Any, index: Sequence[Index], level: int) -> None:
    """Ask for the cache line of an element ahead of its use; `level` is 1 or 2, the cache's."""
    T.evaluate(
        tirx.call_llvm_intrin(
            "void",
            "llvm.prefetch",
            tirx.address_of(buffer[tuple(index)]),
            tirx.const(0, "int32"),
            tirx.const(4 - level, "int32"),
            tirx.const(1, "int32"),
        )
    )


def prefetch_ahead(flat: Any, start: Index, floats: int, turn: Index, turns: int) -> None:
    """Ask for one share of flat[start : start + floats], which the kernel reads next.

    Called in each of `turns` iterations of an inner loop, a few lines at a time: a burst would
    fill the load queue. Where the reuse is so high that reading them takes no time, it does
    nothing. Past the end of the buffer it asks for nothing useful, which does no harm.
    """
    lines = -(-floats * 4 // LINE_BYTES)
    if turns <= 1 or lines * _PREFETCH_REUSE < turns:
        return
    share = -(-lines // turns)
    for i in range(share):
        prefetch(flat, [start + (turn * share + i) * (LINE_BYTES // 4)], 2)


@contextlib.contextmanager
def tasks(parallel: bool, *extents: int) -> Iterator[tuple[Index, ...]]:
    """`parallel_tasks`, or the same loops on the calling thread alone."""
    with parallel_tasks(*extents) if parallel else nest(extents) as indices:
        yield indices


def cover(extent: int, lanes: int, body: Callable[[Index, int], None]) -> None:
    """Call `body(start, lanes)` for vectors that cover [0, extent).

    What whole vectors leave over is covered by one that overlaps its neighbour, so `body` may
    compute an element twice; an extent below `lanes` takes the widest power of two that fits.
    """
    lanes = min(lanes, 1 << (extent.bit_length() - 1))
    with loop(extent // lanes) as i:
        body(i * lanes, lanes)
    if extent % lanes:
        body(extent - lanes, lanes)


def hold(value: tirx.Expr) -> tirx.Expr:
    """A scalar computed once, here, however often the result is used."""
    buffer = T.alloc_buffer((1,), str(value.ty.dtype), scope="global")
    T.buffer_store(buffer, value, [0])
    return buffer[0]
