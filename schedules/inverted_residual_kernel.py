"""The loops of an inverted residual block.

A task computes a chunk of rows in strips. For each panel of the wide channels it computes the rows
that a strip adds to those which the last one left, then their depthwise convolution, while both are
in the cache; when all wide channels of the strip are there, the last convolution reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import conv_stage, cuts, emit
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_stage import Source
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.depthwise_rows import emit_row, tile_columns
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands, lifted_epilogue
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.pointwise_tiles import PointwiseTiles
from tvm_ext.schedules.spatial_pack_weights import group_blocks
from tvm_ext.target import CpuTarget


@dataclass(frozen=True)
class Chain:
    """The three convolutions of a block, and how many rows of the wide tensor a strip reads.

    Attributes
    ----------
    wide, depthwise, last : ConvWorkload
        Each without its producer.
    strip : int
        Rows of the result.
    """

    wide: ConvWorkload
    depthwise: ConvWorkload
    last: ConvWorkload
    strip: int

    @classmethod
    def of(cls, w: ConvWorkload, strip: int) -> Chain:
        """The convolutions of a workload with a producer that has one."""
        assert w.producer is not None and w.producer.producer is not None
        depthwise = w.producer
        alone = replace(depthwise, producer=None)
        return cls(depthwise.producer, alone, replace(w, producer=None), strip)

    @property
    def step(self) -> int:
        """Rows of the wide tensor from a strip to the next."""
        return self.strip * self.depthwise.strides[0]

    @property
    def held(self) -> int:
        """Rows of the wide tensor that a strip reads."""
        d = self.depthwise
        return (self.strip - 1) * d.strides[0] + d.dilation[0] * (d.kernel[0] - 1) + 1

    @property
    def kept(self) -> int:
        """Rows that the next strip reads again."""
        return max(0, self.held - self.step)


class _Strip:
    """Rows of a tensor that start anywhere in it, read by their place in the tensor."""

    def __init__(self, buffer: Any, first: Any) -> None:
        self._buffer, self._first = buffer, first

    def __getitem__(self, index: Sequence[Any]) -> tirx.Expr:
        _, block, row, column, lane = index
        return self._buffer[block, row - self._first, column, lane]


def emit_block(w: ConvWorkload, params: Params, target: CpuTarget) -> None:
    """Declare the arguments and emit the loops over tasks, strips and panels."""
    v, strips = target.lanes, params["strips"]
    chunk, rows = params["chunk"], w.out_spatial[0]
    chain = Chain.of(w, chunk // strips)
    wide, depthwise, last = chain.wide, chain.depthwise, chain.last
    g, width = ConvGeometry.of(last), last.spatial[1]
    wide_blocks = group_blocks(wide, target)

    data = emit.argument("data", stored_shape(wide.in_shape, v))
    narrow = PointwiseTiles(last, params["tile"], params["blocks"], target, "weight")
    filters = emit.argument("filters", (wide_blocks, *depthwise.kernel, v))
    widen = PointwiseTiles(wide, params["wide_tile"], params["wide_blocks"], target, "wide_weight")
    wide_operands = declare_operands(wide.epilogue, v, "z")
    middle_operands = declare_operands(depthwise.epilogue, v, "y")
    operands = declare_operands(w.epilogue, v)
    out = emit.argument("out", stored_shape(w.out_shape, v))

    narrow.weights.view()
    widen.weights.view()
    out = emit.view(out, (w.batch, group_blocks(last, target), *g.out, v))
    data = conv_stage.lifted_input(wide, ConvGeometry.of(wide), data, v)
    epilogue, operands = lifted_epilogue(w.epilogue, operands, g.out, v)

    def keep(held: Any) -> None:
        """Move the rows that two strips share to where the second has them."""
        extents = (wide_blocks, chain.kept, wide.spatial[1])
        with emit.nest(extents) as at, emit.loop(v, "vectorized") as lane:
            block, row, x = at
            T.buffer_store(held, held[block, chain.step + row, x, lane], [block, row, x, lane])

    def widened(n: Any, panel: Any, held: Any, base: Any, known: Any) -> None:
        """Compute the rows from `known` on of those that start at `base`, where there are any."""
        block0 = widen.first_block(panel)
        with emit.loop(chain.held - known) as i:
            row = known + i
            with T.If(tirx.all(base + row >= 0, base + row < wide.spatial[0])), T.Then():

                def store(x: Any, c: Any, lane: Any, value: tirx.Expr) -> None:
                    index = [n, block0 + c, base + row, x, lane]
                    value = apply_epilogue(wide.epilogue, wide_operands, v, index, [value])
                    T.buffer_store(held, value, [block0 + c, row, x, lane])

                start = (base + row) * wide.spatial[1]
                widen.tiles(
                    Source(data, staged=False), n, panel, start, wide.spatial[1],
                    i, chain.held, store,
                )  # fmt: skip

    def convolved(n: Any, panel: Any, held: Any, base: Any, first: Any, stage: Any) -> None:
        """Convolve a panel's channels for the rows of the strip that starts at `first`."""
        columns = tile_columns(width, target)
        with emit.nest((params["wide_blocks"], chain.strip)) as (c, i):
            block = widen.first_block(panel) + c

            def put(x: Any, lane: Any, value: tirx.Expr) -> None:
                index = [n, block, first + i, x, lane]
                value = apply_epilogue(depthwise.epilogue, middle_operands, v, index, [value])
                T.buffer_store(stage, value, [block, 0, i * width + x, lane])

            emit_row(depthwise, columns, v, _Strip(held, base), filters, n, block, [first + i], put)

    def narrowed(n: Any, first: Any, stage: Any) -> None:
        with narrow.weights.panels(0, 0) as panel:
            block0 = narrow.first_block(panel)

            def store(x: Any, c: Any, lane: Any, value: tirx.Expr) -> None:
                index = [n, block0 + c, 0, first * width + x, lane]
                T.buffer_store(out, apply_epilogue(epilogue, operands, v, index, [value]), index)

            narrow.tiles(Source(stage, staged=True), n, panel, 0, chain.strip * width, 0, 1, store)

    with emit.parallel_tasks(w.batch, -(-rows // chunk)) as (n, c):
        held = emit.workspace((wide_blocks, chain.held, wide.spatial[1], v))
        stage = emit.workspace((wide_blocks, 1, chain.strip * width, v))
        start = cuts.panel_start(c, chunk, rows)
        with emit.loop(strips) as strip:
            first = start + strip * chain.strip
            base = first * depthwise.strides[0] - depthwise.pad_before[0]
            known: Any = 0
            if strips > 1 and chain.kept:
                with T.If(strip > 0), T.Then():
                    keep(held)
                known = tirx.if_then_else(strip > 0, chain.kept, 0)
            with widen.weights.panels(0, 0) as panel:
                widened(n, panel, held, base, known)
                convolved(n, panel, held, base, first, stage)
            narrowed(n, first, stage)
