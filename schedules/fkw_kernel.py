"""The loops of a convolution with FKW weights: filter by filter, pattern by pattern.

A task copies the rows that it needs (`fkw_stage`). Then each filter passes over them in tiles of
some rows x one vector: for each pattern, a loop takes the filter's kernels of that pattern. In it
the taps are part of the code, without a branch or an index: each vector of the copied rows is
loaded once and multiplied for every tap and row that reads it, into one accumulator a row for each
shift (`fkw_geometry`). Last, the sums of the shifts are added up where they belong.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands, lifted_epilogue
from tvm_ext.schedules.fkw_geometry import FkwGeometry
from tvm_ext.schedules.fkw_reads import runs_of
from tvm_ext.schedules.fkw_stage import stage_rows
from tvm_ext.sparsity.fkw import BLOCK_CHANNELS, blocks_of, structure_dtypes
from tvm_ext.sparsity.kernel_patterns import Pattern

_ZERO = tirx.const(0.0, "float32")
_NONE = tirx.const(0, "int64")


def emit_fkw(
    w: ConvWorkload, g: FkwGeometry, patterns: tuple[Pattern, ...], rows: int, pieces: int
) -> None:
    """Declare the arguments and emit the loops over tasks and filters.

    Parameters
    ----------
    rows : int
        Of a tile, at most.
    pieces : int
        Parts of the filters that tasks share.
    """
    data = emit.argument("data", w.in_shape)
    stored = _Stored(w, patterns)
    # Of each piece: its first filter, kernel and weight.
    shares = emit.argument("shares", (pieces + 1, 3), "int64")
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    epilogue, operands = lifted_epilogue(w.epilogue, operands, g.out, 0)

    def task(n: Any, first: Any, x0: Any, piece: Any) -> None:
        start = 0 if g.whole else T.Bind(_clamped(x0 + g.shifts[0], g.columns - g.width))
        copy = stage_rows(g, data, n, first, start) if patterns else None
        sums = _Sums(g)
        # The kernel and the weight with which a filter begins.
        at = T.alloc_buffer((2,), "int64", scope="global")
        for i in range(2):
            T.buffer_store(at, shares[piece, 1 + i], [i])
        begin = T.Bind(shares[piece, 0])
        with T.serial(_NONE, shares[piece + 1, 0] - begin) as i:
            f = T.Bind(begin + i)
            channel = T.Bind(tirx.Cast("int32", stored.order[f]))
            y = 0
            for count, size in cuts.split_extent(g.block_rows, rows):
                with emit.loop(count) as tile, emit.loop(g.strip) as column:
                    _tile(g, stored, copy, f, channel, at, sums, (y + tile * size, column), size)
                y += count * size
            finish(n, channel, first, x0, start, sums)
            kernels, values = stored.passed(f)
            T.buffer_store(at, at[0] + kernels, [0])
            T.buffer_store(at, at[1] + values, [1])

    def finish(n: Any, channel: Any, first: Any, x0: Any, start: Any, sums: _Sums) -> None:
        """Add up the sums of the shifts and store the outputs."""
        with emit.loop(g.fold) as block, emit.loop(g.block_rows) as y:
            row = first + g.block_start(block) + y
            origin = block * g.block_lanes + (x0 - start)

            def run(x: Any, lanes: int) -> None:
                with emit.loop(lanes, "vectorized") as lane:
                    index = [n, channel, row, x0 + x + lane]
                    value = sums.total(y, origin + x + lane)
                    result = apply_epilogue(epilogue, operands, 0, index, [value])
                    T.buffer_store(out, result, index)

            emit.cover(g.strip_columns, g.lanes, run)

    chunks, strips = -(-g.out[0] // g.chunk), -(-g.out[1] // g.strip_columns)
    with emit.parallel_tasks(w.batch, chunks, strips, pieces) as (n, c, s, piece):
        first = cuts.panel_start(c, g.chunk, g.out[0])
        task(n, first, cuts.panel_start(s, g.strip_columns, g.out[1]), piece)


class _Stored:
    """The arguments that `Fkw` weights are, and what they say of a filter."""

    def __init__(self, w: ConvWorkload, patterns: tuple[Pattern, ...]) -> None:
        self.patterns = patterns
        self.channels, self.filters = w.in_channels // w.groups, w.out_channels // w.groups
        self.blocks = blocks_of(self.channels)
        runs = len(patterns) * self.blocks
        order, strides = structure_dtypes(w.out_channels, self.channels)
        kept, kernels = tirx.Var("kept", "int64"), tirx.Var("kernels", "int64")
        self.weights = emit.argument("weights", (kept,))
        self.order = emit.argument("order", (w.out_channels,), order.name)
        self.strides = emit.argument("strides", (w.out_channels, runs + 1), strides.name)
        self.indices = emit.argument("indices", (kernels,), "uint8")

    def before(self, f: Any, pattern: int, block: Any = 0) -> tirx.Expr:
        """Kernels of a filter before those of a pattern in a block of channels."""
        return tirx.Cast("int64", self.strides[f, pattern * self.blocks + block])

    def passed(self, f: Any) -> tuple[tirx.Expr, tirx.Expr]:
        """Kernels and weights of a filter."""
        values: Any = _NONE
        for p, pattern in enumerate(self.patterns):
            values = values + (self.before(f, p + 1) - self.before(f, p)) * len(pattern)
        return self.before(f, len(self.patterns)), values


class _Sums:
    """The sums of each shift over a task's rows, with the zeros around them that shifts reach."""

    def __init__(self, g: FkwGeometry) -> None:
        self._shifts = g.shifts
        before, behind = (-(-margin // g.lanes) * g.lanes for margin in g.margins)
        self._before, self._pitch = before, before + g.width + behind
        shape = (max(1, len(g.shifts)), g.block_rows, self._pitch)
        self._buffer = emit.workspace(shape)
        if self._pitch > g.width:
            vectors = (*shape[:2], self._pitch // g.lanes)
            with emit.nest(vectors) as (s, y, x), T.vectorized(0, g.lanes) as lane:
                T.buffer_store(self._buffer, _ZERO, [s, y, x * g.lanes + lane])

    def store(self, shift: int, y: Any, x: Any, value: tirx.Expr) -> None:
        T.buffer_store(self._buffer, value, [shift, y, self._before + x])

    def total(self, y: Any, x: Any) -> tirx.Expr:
        """The output at row `y` of a block and column `x` of the copy."""
        value: Any = _ZERO
        for s, shift in enumerate(self._shifts):
            value = value + self._buffer[s, y, self._before + x + shift]
        return value


def _tile(
    g: FkwGeometry, stored: _Stored, copy: Any, f: Any, channel: Any, at: Any, sums: _Sums,
    tile: tuple[Any, Any], size: int,
) -> None:  # fmt: skip
    """All kernels of a filter, for a tile of `size` rows from the first one, at a vector."""
    v, (y, column) = g.lanes, tile
    acc = [T.alloc_buffer((size * v,), "float32", scope="global") for _ in g.shifts]
    for buffer in acc:
        with emit.loop(size, "unroll") as r, T.vectorized(0, v) as lane:
            T.buffer_store(buffer, _ZERO, [r * v + lane])
    own = channel // stored.filters * stored.channels
    origin = T.Bind(_NONE + own * g.plane + g.place(0, column, y))
    kernel, weight = T.Bind(at[0]), T.Bind(at[1])
    for p, pattern in enumerate(stored.patterns):
        before = T.Bind(stored.before(f, p))
        with emit.loop(stored.blocks) as block:
            skipped = T.Bind(stored.before(f, p, block))
            with T.serial(_NONE, stored.before(f, p, block + 1) - skipped) as i:
                index = tirx.Cast("int64", stored.indices[kernel + skipped + i])
                base = T.Bind((index + block * BLOCK_CHANNELS) * g.plane + origin)
                first = T.Bind(weight + (skipped - before + i) * len(pattern))
                values = [T.Bind(stored.weights[first + t]) for t in range(len(pattern))]
                _multiply(g, pattern, copy, base, values, acc, size)
        weight = T.Bind(weight + (stored.before(f, p + 1) - before) * len(pattern))
    for s, buffer in enumerate(acc):
        with emit.loop(size, "unroll") as r, T.vectorized(0, v) as lane:
            sums.store(s, y + r, column * v + lane, buffer[r * v + lane])


def _multiply(
    g: FkwGeometry, pattern: Pattern, copy: Any, base: Any, values: list[Any], acc: list[Any],
    size: int,
) -> None:  # fmt: skip
    """One kernel: every vector once, for all taps and rows that read it."""
    v = g.lanes
    for part, start, count, taps in runs_of(g, pattern, size):
        with emit.loop(count, "unroll") as i, T.vectorized(0, v) as lane:
            x = T.Bind(copy[base + g.place(part, 0, start + i) + lane])
            for number, shift, below in taps:
                to = (start + i - below) * v + lane
                T.buffer_store(acc[shift], acc[shift][to] + values[number] * x, [to])


def _clamped(x: Any, most: int) -> tirx.Expr:
    """x, but from 0 to `most`."""
    return tirx.max(tirx.min(x, most), tirx.const(0, "int32"))
