"""One row of a pool's outputs: down the rows into a line buffer, then along the line.

Both pools are separable. The taps of the outer dimensions are reduced first, into a buffer of one
padded input row that stays in L1; then the taps of the last dimension are reduced from there. A
kernel of k x k costs about 2k operations an output instead of k * k, and since the buffer holds the
padding, no element is tested against the borders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit
from tvm_ext.schedules.pool_global import combine, identity
from tvm_ext.schedules.window import Axis
from tvm_ext.schedules.workload import PoolWorkload
from tvm_ext.target import CpuTarget

# A longer line of taps is a loop; unrolling it would only fill the instruction cache.
_UNROLL_TAPS = 8


def pool_seconds(w: PoolWorkload, taps: int, target: CpuTarget) -> float:
    """Seconds of arithmetic on one core when an output costs `taps` combinations."""
    # A maximum that keeps NaN is three instructions; about two vectors of them a cycle.
    work = taps * (3 if w.kind == "max" else 1) + w.prologue_flops + w.epilogue.flops
    return prod(w.out_shape) * work / (0.5 * target.fma_peak)


def line_taps(w: PoolWorkload) -> int:
    """Combinations an output, down the rows and along the line."""
    return w.kernel[-1] - 1 + (prod(w.kernel[:-1]) - 1) * w.strides[-1]


def pool_axes(w: PoolWorkload, padded: bool = False) -> list[Axis]:
    """The spatial dimensions; with `padded` the padding counts as input."""
    return [
        Axis(n + before + after if padded else n, out, k, s, d, 0 if padded else before)
        for n, before, after, out, k, s, d in zip(
            w.shape[2:], w.pad_before, w.pad_after, w.out_shape[2:], w.kernel, w.strides,
            w.dilation, strict=True,
        )
    ]  # fmt: skip


class PoolLine:
    """The line buffer of one task, and the loops that make a row of outputs with it.

    Vectors hold the lanes of a channel block or, in the plain layout, neighbouring columns.
    `vectors` of them are accumulated in registers at a time.
    """

    def __init__(self, w: PoolWorkload, lanes: int, block: int, vectors: int) -> None:
        self._w, self._lanes, self._block, self._vectors = w, lanes, block, vectors
        self._unit = lanes if block else 1
        self._axes = pool_axes(w)
        self._counted = pool_axes(w, w.count_include_pad)
        s, d, k, before = w.strides[-1], w.dilation[-1], w.kernel[-1], w.pad_before[-1]
        # Windows that share no column gain nothing from the line, if their loads are whole vectors.
        self._direct = (
            bool(block)
            and k <= s
            and prod(w.kernel) <= _UNROLL_TAPS
            and not any(axis.cut for axis in self._axes)
        )
        if not self._direct:
            line = (w.out_shape[-1] - 1) * s + d * (k - 1) + 1
            self._inside = max(0, min(w.shape[-1], line - before))
            self._buffer = emit.workspace((line * self._unit,))
            self._blank(0, min(before, line))
            self._blank(before + self._inside, line)
        varies = w.kind == "avg" and self._counted[-1].cut
        self._inverse = _inverse_counts(self._counted[-1]) if varies else None

    def _blank(self, start: int, stop: int) -> None:
        with emit.loop(max(0, stop - start) * self._unit) as i:
            T.buffer_store(self._buffer, identity(self._w), [start * self._unit + i])

    def row(
        self,
        at: Sequence[Any],
        source: Callable[[Sequence[Any], Any], tirx.Expr],
        store: Callable[[Any, Any, tirx.Expr], None],
    ) -> None:
        """The outputs at `at` of the outer dimensions.

        Parameters
        ----------
        source
            Element for (position in the outer dimensions of the input, place in its row: column
            times lanes plus lane, when blocked).
        store
            Stores a result, given the column and (when blocked) the lane.
        """
        w = self._w
        taps = [axis.taps(x) for axis, x in zip(self._axes, at, strict=False)]
        # What a window's sum is multiplied by, as far as it doesn't depend on the column.
        scale: Any = tirx.const(1.0 if self._inverse is not None else 1.0 / w.kernel[-1], "float32")
        for axis, x in zip(self._counted, at, strict=False):
            scale = scale * _inverse(axis, x)
        scale = emit.hold(scale) if w.kind == "avg" else None

        def element(index: Sequence[Any], x: Any) -> tirx.Expr:
            where = [
                axis.source(p, first + t)
                for axis, p, (first, _), t in zip(self._axes, at, taps, index, strict=False)
            ]
            return source(where, x)

        if not self._direct:
            self._down([extent for _, extent in taps], element)
        self._along(element, scale, store)

    def _down(self, taps: Sequence[Any], element: Callable[..., tirx.Expr]) -> None:
        """Reduce the outer dimensions, `taps` of each, into the line."""
        w, start_of_line = self._w, self._w.pad_before[-1] * self._unit

        def part(start: Any, vectors: int, lanes: int) -> None:
            acc = emit.RegisterTile(1, vectors, lanes)

            def add(index: Sequence[Any]) -> None:
                acc.fill(
                    lambda r, c, lane: combine(
                        w, acc.get(r, c, lane), element(index, start + c * lanes + lane)
                    )
                )

            if len(taps) == 1 and isinstance(taps[0], int):
                # Taps that are always there: the first of them is what the others are added to.
                acc.fill(lambda r, c, lane: element([0], start + c * lanes + lane))
                with emit.loop(taps[0] - 1, _loop_kind(taps[0])) as t:
                    add([t + 1])
            else:
                acc.fill(lambda r, c, lane: identity(w))
                with emit.nest(taps) as index:
                    add(index)
            acc.each(
                lambda r, c, lane: T.buffer_store(
                    self._buffer, acc.get(r, c, lane), [start_of_line + start + c * lanes + lane]
                )
            )

        _cover(self._inside * self._unit, self._lanes, self._vectors, part)

    def _along(
        self,
        element: Callable[..., tirx.Expr],
        scale: Any,
        store: Callable[[Any, Any, tirx.Expr], None],
    ) -> None:
        """Reduce the last dimension from the line, or all of them at once, and store."""
        w, v, block = self._w, self._lanes, self._block
        s, d, k = w.strides[-1], w.dilation[-1], w.kernel[-1]
        rows = list(product(*map(range, w.kernel[:-1]))) if self._direct else [()]

        def part(start: Any, vectors: int, lanes: int) -> None:
            acc = emit.RegisterTile(1, vectors, lanes)

            def tap(index: Sequence[int], t: Any, c: Any, lane: Any) -> tirx.Expr:
                if block:
                    place = ((start // v + c) * s + t * d) * v + lane
                else:
                    place = (start + c * lanes + lane) * s + t * d
                return element(index, place) if self._direct else self._buffer[place]

            acc.fill(lambda r, c, lane: tap(rows[0], 0, c, lane))
            for index in rows:
                done = 1 if index is rows[0] else 0
                with emit.loop(k - done, _loop_kind(k)) as t:
                    acc.fill(
                        lambda r, c, lane, index=index, at=t + done: combine(
                            w, acc.get(r, c, lane), tap(index, at, c, lane)
                        )
                    )

            def finish(r: Any, c: Any, lane: Any) -> None:
                column = start // v + c if block else start + c * lanes + lane
                value = acc.get(r, c, lane)
                if w.kind == "avg":
                    value = value * scale
                    value = value if self._inverse is None else value * self._inverse[column]
                store(column, lane, value)

            acc.each(finish)

        _cover(w.out_shape[-1] * self._unit, v, self._vectors, part)


def _loop_kind(taps: int) -> str:
    return "unroll" if taps <= _UNROLL_TAPS else "serial"


def _cover(extent: int, lanes: int, vectors: int, body: Callable[[Any, int, int], None]) -> None:
    """Call `body(start, vectors, lanes)` in loops over [0, extent); the tail is one vector."""
    whole = extent // lanes
    start = 0
    for count, size in cuts.split_extent(whole, vectors) if whole else ():
        with emit.loop(count) as t:
            body(start + t * (size * lanes), size, lanes)
        start += count * size * lanes
    if extent > start:
        if extent >= lanes:
            # Overlap the last vector with its neighbour: the same results are computed twice.
            body(extent - lanes, 1, lanes)
        else:
            with emit.loop(extent) as i:
                body(i, 1, 1)


def _inverse(axis: Axis, position: Any) -> Any:
    """1 / the elements that an average has along one axis."""
    if not axis.cut:
        return tirx.const(1.0 / axis.kernel, "float32")
    taps = tirx.max(axis.taps(position)[1], 1)
    return tirx.const(1.0, "float32") / taps.astype("float32")


def _inverse_counts(line: Axis) -> Any:
    """`_inverse` of every output column, in a buffer."""
    buffer = emit.workspace((line.out,))
    with emit.loop(line.out) as x:
        T.buffer_store(buffer, _inverse(line, x), [x])
    return buffer
