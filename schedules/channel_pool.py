"""Averages over neighbouring channels, as local response normalisation takes them of squares.

Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks" (2012), 3.3.

A task copies all channels of some positions, with zeros on both sides of them, so that no tap is
tested against the borders. In channel blocks a position's channels are neighbours in that copy, and
a tap is a vector that starts between two blocks; of planes a tap is another row of the copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands
from tvm_ext.schedules.epilogue import Epilogue
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.window import unflatten
from tvm_ext.schedules.workload import Shape, operand_bytes
from tvm_ext.target import CpuTarget

_POSITIONS = (8, 16, 32, 64, 128, 256)
# Share of the L1 cache for the copy; the rest is for the tensors.
_L1_SHARE = 0.5
# What a core streams in about the time that a parallel loop takes to start.
_PARALLEL_BYTES = 64 << 10
# More taps are a loop; unrolling it would only fill the instruction cache.
_UNROLL_TAPS = 8
_NO_OPERANDS: dict[int, tirx.Expr] = {}

# Of a row, the first element of a vector, a lane (of a vectorised loop), how many lanes of the row
# are channels, and the average.
Store = Callable[[Any, Any, Any, int, tirx.Expr], None]


@dataclass(frozen=True)
class ChannelPoolWorkload:
    """The average of `size` neighbouring channels for each, of N C spatial.

    `before` of them lie before the channel itself. Those past the ends count as zeros. The
    `prologue` makes from each input element (value 0) the one that is averaged, without operands.
    """

    shape: Shape
    size: int
    before: int
    dtype: str = "float32"
    epilogue: Epilogue = field(default_factory=Epilogue)
    prologue: Epilogue | None = None

    @property
    def out_shape(self) -> Shape:
        return self.shape

    @property
    def after(self) -> int:
        """Channels behind the own one."""
        return self.size - 1 - self.before

    @property
    def flops(self) -> int:
        before = self.prologue.flops if self.prologue else 0
        return prod(self.shape) * (self.size + before + self.epilogue.flops)

    @property
    def bytes(self) -> int:
        return 8 * prod(self.shape) + operand_bytes(self.epilogue)


@register
class ChannelPool(Algorithm[ChannelPoolWorkload]):
    """Each tap a vector of lanes or, of planes, of neighbouring positions.

    Parameters of the plan: `positions` of a task; `parallel`, whether threads share the tasks.
    """

    name: ClassVar[str] = "channel_pool"
    workload_type: ClassVar[type] = ChannelPoolWorkload

    def supports(self, workload: ChannelPoolWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if not 3 <= len(w.shape) <= 5:
            return refuse(f"rank {len(w.shape)}; only 3 to 5")
        if prod(w.shape) == 0:
            return refuse(f"shape {w.shape} has no elements")
        if not 0 <= w.before < w.size:
            return refuse(f"{w.before} channels before of {w.size}; only windows with the own one")
        if w.prologue and (w.prologue.operands or w.prologue.results != 1):
            return refuse("a prologue of more than the input")
        return YES

    def layouts(
        self, workload: ChannelPoolWorkload, target: CpuTarget
    ) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes), (0, 0))

    def space(self, workload: ChannelPoolWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {"positions": _POSITIONS, "parallel": (False, True)}

    def default(self, workload: ChannelPoolWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        floats = w.shape[1] + w.size + 2 * target.lanes
        fitting = [n for n in _POSITIONS if 4 * n * floats <= _L1_SHARE * target.l1d]
        parallel = w.bytes > _PARALLEL_BYTES and target.cores > 1
        return {"positions": max(fitting, default=_POSITIONS[0]), "parallel": parallel}

    def cost(self, workload: ChannelPoolWorkload, params: Params, target: CpuTarget) -> float:
        w = workload
        cores = target.cores if params["parallel"] else 1
        # Half the FMA rate is one operation an instruction; the loops reach about all of that.
        compute = w.flops / (0.5 * target.fma_peak)
        return max(compute / cores, w.bytes / target.bandwidth(cores)) + costs.fork(cores)

    def kernel(
        self,
        workload: ChannelPoolWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target.lanes, layout[0]))


def _emit(w: ChannelPoolWorkload, params: Params, v: int, block: int) -> None:
    """Declare the arguments and emit the loops over samples and positions."""
    batch, _, *spatial = w.shape
    positions, stored = prod(spatial), stored_shape(w.shape, block)
    data = emit.argument("data", stored)
    operands = declare_operands(w.epilogue, block)
    out = emit.argument("out", stored)
    unit = block or 1
    flat = (batch, stored[1], positions * unit)
    data, out = emit.view(data, flat), emit.view(out, flat)
    count = min(params["positions"], positions)
    tasks = -(-positions // count)
    with emit.tasks(params["parallel"], batch, tasks) as (n, task):
        first = cuts.panel_start(task, count, positions)
        copy = _Copy(w, v, block, count)
        copy.fill(lambda row, x: data[n, row, first * unit + x])

        def store(row: Any, x: Any, lane: Any, live: int, value: tirx.Expr) -> None:
            place = unflatten(first + x // unit if block else first + x + lane, spatial)
            index = [n, row, *place] + ([lane] if block else [])
            value = apply_epilogue(w.epilogue, operands, block, index, [value])
            if block and live < v:
                # Of zeros the epilogue may not be finite, as the lanes past the last channel are.
                value = tirx.Select(lane < live, value, tirx.const(0.0, "float32"))
            T.buffer_store(out, value, [n, row, first * unit + x + lane])

        copy.average(store)


class _Copy:
    """All channels of a task's positions, between zeros.

    It is one dimension: of two, TVM would cut off the columns that nothing uses. A row is, as in
    the tensors, a block of channels, or a single one.
    """

    def __init__(self, w: ChannelPoolWorkload, lanes: int, block: int, positions: int) -> None:
        self._w, self._lanes, self._block, self._positions = w, lanes, block, positions
        channels = w.shape[1]
        if block:
            # Blocks start at whole vectors, so that only taps cross their borders.
            self._lead = -(-w.before // block) * block
            self._pitch = self._lead + -(-(channels + w.after) // block) * block
            self._flat = emit.workspace((positions * self._pitch,))
        else:
            self._flat = emit.workspace(((channels + w.size - 1) * positions,))

    def _place(self, row: Any, x: Any, tap: Any) -> Any:
        """Where the copy has the channel of a tap, of element `x` of a row of the task."""
        if not self._block:
            return (row + tap) * self._positions + x
        start = self._lead - self._w.before
        return x // self._block * self._pitch + start + row * self._block + tap

    def _each(self, body: Callable[[Any, int], None]) -> None:
        """Call `body(start, lanes)` for vectors that cover the elements of a row of the task."""
        if self._block:
            with emit.loop(self._positions) as position:
                body(position * self._block, self._block)
        else:
            emit.cover(self._positions, self._lanes, body)

    def fill(self, load: Callable[[Any, Any], tirx.Expr]) -> None:
        """Copy the task's elements, `load(row, x)`, and set what is around them."""
        w = self._w
        with emit.loop(-(-w.shape[1] // (self._block or 1))) as row:

            def copy(start: Any, lanes: int) -> None:
                with emit.loop(lanes, "vectorized") as lane:
                    value = load(row, start + lane)
                    if w.prologue:
                        value = w.prologue.evaluate([value], _NO_OPERANDS.__getitem__)
                    T.buffer_store(self._flat, value, [self._place(row, start, w.before) + lane])

            self._each(copy)
        if not self._block:
            self._blank(0, w.before * self._positions)
            end = (w.before + w.shape[1]) * self._positions
            self._blank(end, w.after * self._positions)
            return
        # Also over the lanes past the last channel, which hold anything.
        end = self._lead + w.shape[1]
        with emit.loop(self._positions) as position:
            self._blank(position * self._pitch, self._lead)
            self._blank(position * self._pitch + end, self._pitch - end)

    def _blank(self, start: Any, count: int) -> None:
        def zero(x: Any, lanes: int) -> None:
            with emit.loop(lanes, "vectorized") as lane:
                T.buffer_store(self._flat, tirx.const(0.0, "float32"), [start + x + lane])

        if count:
            emit.cover(count, self._lanes, zero)

    def average(self, store: Store) -> None:
        """Call `store` for all elements."""
        unit = self._block or 1
        rows, rest = divmod(self._w.shape[1], unit)
        if rows:
            with emit.loop(rows) as row:
                self._each(lambda x, lanes: self._vector(row, x, lanes, unit, store))
        if rest:
            self._each(lambda x, lanes: self._vector(rows, x, lanes, rest, store))

    def _vector(self, row: Any, start: Any, lanes: int, live: int, store: Store) -> None:
        size = self._w.size
        total = emit.RegisterTile(1, 1, lanes)

        def tap(t: Any, lane: Any) -> tirx.Expr:
            return self._flat[self._place(row, start, t) + lane]

        total.fill(lambda r, c, lane: tap(0, lane))
        with emit.loop(size - 1, "unroll" if size <= _UNROLL_TAPS else "serial") as t:
            total.fill(lambda r, c, lane: total.get(r, c, lane) + tap(t + 1, lane))
        inverse = tirx.const(1.0 / size, "float32")
        total.each(
            lambda r, c, lane: store(row, start, lane, live, total.get(r, c, lane) * inverse)
        )
