"""What a convolution can compute row by row in place of reading it: the producers of its input.

Each class computes rows of a two-dimensional producer in blocked layout. Constructing one declares
its weights, and then its epilogue's operands, as the next arguments of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.depthwise_rows import core_seconds, emit_row, tile_columns
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands
from tvm_ext.schedules.pool_line import PoolLine, line_taps, pool_seconds
from tvm_ext.schedules.resize import ResizeWorkload, declare_taps, interpolated
from tvm_ext.schedules.workload import PoolWorkload
from tvm_ext.target import CpuTarget

# Stores an element of a row, given its column, its lane and the value.
Put = Callable[[Any, Any, tirx.Expr], None]
# Computes a row, given the image, the channel block, the row and where its elements go.
RowOf = Callable[[Any, Any, Any, Put], None]
# Vectors that a pool accumulates in registers at a time.
_VECTORS = 4


class ProducerRows(Protocol):
    """Computes the rows of a convolution's input."""

    def begin(self, data: Any) -> RowOf:
        """Prepare a task; gives the function of (image, channel block, row, put)."""


class DepthwiseRows:
    """Of a depthwise convolution."""

    def __init__(self, w: ConvWorkload, target: CpuTarget) -> None:
        self._w, self._lanes = w, target.lanes
        self._columns = tile_columns(w.out_spatial[-1], target)
        blocks = -(-w.in_channels // target.lanes)
        self._filters = emit.argument("filters", (blocks, *w.kernel, target.lanes))
        self._operands = declare_operands(w.epilogue, target.lanes, "y")

    def begin(self, data: Any) -> RowOf:
        w, v = self._w, self._lanes

        def row_of(n: Any, block: Any, row: Any, put: Put) -> None:
            def finished(x: Any, lane: Any, value: tirx.Expr) -> None:
                index = [n, block, row, x, lane]
                put(x, lane, apply_epilogue(w.epilogue, self._operands, v, index, [value]))

            emit_row(w, self._columns, v, data, self._filters, n, block, [row], finished)

        return row_of


class PoolRows:
    """Of a pool."""

    def __init__(self, w: PoolWorkload, target: CpuTarget) -> None:
        self._w, self._lanes = w, target.lanes
        self._operands = declare_operands(w.epilogue, target.lanes, "y")

    def begin(self, data: Any) -> RowOf:
        w, v = self._w, self._lanes
        line = PoolLine(w, v, v, _VECTORS)

        def row_of(n: Any, block: Any, row: Any, put: Put) -> None:
            def store(x: Any, lane: Any, value: tirx.Expr) -> None:
                index = [n, block, row, x, lane]
                put(x, lane, apply_epilogue(w.epilogue, self._operands, v, index, [value]))

            line.row([row], lambda at, x: data[(n, block, *at, x // v, x % v)], store)

        return row_of


class ResizeRows:
    """Of an enlargement."""

    def __init__(self, w: ResizeWorkload, target: CpuTarget) -> None:
        self._w, self._lanes = w, target.lanes
        self._taps = None if w.kind == "nearest" else declare_taps(w)

    def begin(self, data: Any) -> RowOf:
        w, v = self._w, self._lanes
        fy, fx = w.factors

        def nearest(n: Any, block: Any, row: Any, put: Put) -> None:
            with (
                emit.loop(w.shape[-1]) as x,
                emit.loop(fx, "unroll") as j,
                emit.loop(v, "vectorized") as lane,
            ):
                put(x * fx + j, lane, data[n, block, row // fy, x, lane])

        def linear(n: Any, block: Any, row: Any, put: Put) -> None:
            with emit.loop(w.out_shape[-1]) as x, emit.loop(v, "vectorized") as lane:
                put(x, lane, interpolated(w, self._taps, data, (n, block), row, x, [lane]))

        return nearest if self._taps is None else linear


def producer_rows(producer: Any, target: CpuTarget) -> ProducerRows:
    """The rows of a producer, by its type."""
    if isinstance(producer, ConvWorkload):
        return DepthwiseRows(producer, target)
    if isinstance(producer, PoolWorkload):
        return PoolRows(producer, target)
    return ResizeRows(producer, target)


def padded_row(
    row_of: RowOf, n: Any, block: Any, row: Any, bounds: Sequence[tirx.Expr], copy: Any,
    at: tuple[Any, ...], columns: tuple[int, int, int], lanes: int,
) -> None:  # fmt: skip
    """Compute a row of the producer between zeros, or zeros where it is outside.

    Parameters
    ----------
    row_of, n, block, row
        What a `ProducerRows` began, and its arguments.
    bounds
        Conditions under which there is such a row.
    copy, at
        Where it goes: copy[*at, column, lane].
    columns
        Zeros before the row, its own columns, and all of the copy's.
    """
    before, width, length = columns

    def put(x: Any, lane: Any, value: tirx.Expr) -> None:
        T.buffer_store(copy, value, [*at, before + x, lane])

    def inside() -> None:
        blank(copy, at, 0, before, lanes)
        row_of(n, block, row, put)
        blank(copy, at, before + width, length, lanes)

    if not bounds:
        inside()
        return
    with T.If(tirx.all(*bounds)):
        with T.Then():
            inside()
        with T.Else():
            blank(copy, at, 0, length, lanes)


def blank(buffer: Any, at: tuple[Any, ...], start: int, stop: int, lanes: int) -> None:
    """Zeros in the columns from `start` to `stop` of a row."""
    with emit.loop(max(0, stop - start)) as x, emit.loop(lanes, "vectorized") as lane:
        T.buffer_store(buffer, tirx.const(0.0, "float32"), [*at, start + x, lane])


def producer_seconds(producer: Any, target: CpuTarget) -> float:
    """Seconds of one core for the arithmetic of all rows; nothing without a producer."""
    if isinstance(producer, ConvWorkload):
        return core_seconds(producer, target)
    if isinstance(producer, PoolWorkload):
        return pool_seconds(producer, line_taps(producer), target)
    # Half the FMA rate is one operation an instruction; the loads and the positions take as many.
    return producer.flops / (0.25 * target.fma_peak) if producer else 0.0
