"""The loops of a matrix product, shared by every algorithm that is one.

They are those of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
(2008), with the operand order of a network: a chunk of the left side's rows stays in the L2 cache
while panels of the right side pass through L1, and a tile of rows x vectors accumulates in
registers. The left side isn't packed, because every address in it is a constant away from one
pointer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit

_UNROLL = 8
_LINE = 16  # float32 values in a cache line

Right = Callable[[Any, Any, Any], tirx.Expr]


@dataclass(frozen=True)
class Blocking:
    """rows x n x k cut into tiles, chunks, panels and parts.

    Attributes
    ----------
    rows, n, k : int
        Extents of the product.
    lanes, blocks, tile : int
        A tile holds `tile` rows and `blocks` vectors of `lanes` columns.
    chunks, pieces : int
        Tasks along the rows and along the columns.
    parts : int
        The reduction passes in so many parts; it must divide k.
    """

    rows: int
    n: int
    k: int
    lanes: int
    blocks: int
    tile: int
    chunks: int = 1
    pieces: int = 1
    parts: int = 1

    @property
    def span(self) -> int:
        """Columns of a panel."""
        return self.blocks * self.lanes

    @property
    def panels(self) -> int:
        return -(-self.n // self.span)

    @property
    def chunk(self) -> int:
        """Rows of a task."""
        return -(-self.rows // self.chunks)

    @property
    def piece_panels(self) -> int:
        """Panels of a task."""
        return -(-self.panels // self.pieces)

    @property
    def steps(self) -> int:
        """Reduction steps of a part."""
        return self.k // self.parts

    @property
    def tasks(self) -> tuple[int, int]:
        """Chunks and pieces that aren't empty."""
        return -(-self.rows // self.chunk), -(-self.panels // self.piece_panels)


def pack_panels(matrix: np.ndarray, blocks: int, lanes: int) -> np.ndarray:
    """(k, n) to (panels, k, blocks, lanes); fewer columns than a panel are padded with zeros."""
    panels = cuts.cut_panels(matrix, 1, blocks * lanes, at=0)
    return np.ascontiguousarray(panels.reshape(*panels.shape[:2], blocks, lanes))


def emit_task(
    b: Blocking,
    chunk: Any,
    piece: Any,
    left: Callable[[Any, Any], tirx.Expr],
    panel_of: Callable[[Any, Any], Right],
    store: Callable[[Any, Any, Any, Any, tirx.Expr], None],
    fetch: Callable[[Any, Any, Any], None] | None = None,
) -> None:
    """One task of a product.

    Parameters
    ----------
    chunk, piece
        The task's place, within `b.tasks`.
    left
        Element (row, step) of the left side.
    panel_of
        Called for a panel and the first step of a part, where it may emit a copy; gives the
        function of (step within the part, vector, lane) that reads the panel.
    store
        Stores a result, given row, the panel's first column, vector, lane and the value.
    fetch
        Called for a panel, the first step of a part and an element of the part's stretch of that
        panel: prefetches that element's cache line. It may be past the last panel. Without it the
        first row tile of every panel waits for the panel.
    """
    first = cuts.panel_start(chunk, b.chunk, b.rows)
    sums = None
    if b.parts > 1:
        sums = emit.workspace((b.piece_panels, b.chunk, b.blocks, b.lanes))
    unroll = cuts.divisors(b.steps, _UNROLL)[-1]

    # The row tiles of a panel take turns to ask for the lines of the next one.
    turns = sum(count for count, _ in cuts.split_extent(b.chunk, b.tile))
    lines = -(-b.steps * b.span // _LINE)
    lines_a_loop = -(-lines // (turns * (b.steps // unroll)))
    if turns == 1:
        # Every panel is read once, in order: the processor prefetches that better by itself.
        fetch = None

    def fetch_next(panel: Any, part: Any, loops: Any) -> None:
        line = loops * lines_a_loop
        with T.If(line < lines), T.Then():
            for j in range(lines_a_loop):
                fetch(panel + 1, part * b.steps, (line + j) * _LINE)

    def tile(
        panel: Any, slot: Any, part: Any, right: Right, row0: Any, size: int, turn: Any
    ) -> None:
        acc = emit.RegisterTile(size, b.blocks, b.lanes)
        if sums is None:
            acc.zero()
        else:
            with T.If(part == 0):
                with T.Then():
                    acc.zero()
                with T.Else():
                    acc.fill(lambda r, c, i: sums[slot, row0 + r, c, i])
        with emit.loop(b.steps // unroll) as outer:
            if fetch is not None:
                fetch_next(panel, part, turn * (b.steps // unroll) + outer)
            with emit.loop(unroll, "unroll") as inner:
                step = outer * unroll + inner
                acc.multiply_add(
                    lambda r: left(first + row0 + r, part * b.steps + step),
                    lambda c, i: right(step, c, i),
                )
        column0 = cuts.panel_start(panel, b.span, b.n)

        def write() -> None:
            if b.n >= b.span:
                acc.each(lambda r, c, i: store(first + row0 + r, column0, c, i, acc.get(r, c, i)))
                return
            for r in range(size):
                for i in range(b.n):
                    store(first + row0 + r, 0, 0, i, acc.get(r, 0, i))

        if sums is None:
            write()
            return
        with T.If(part == b.parts - 1):
            with T.Then():
                write()
            with T.Else():
                acc.each(
                    lambda r, c, i: T.buffer_store(sums, acc.get(r, c, i), [slot, row0 + r, c, i])
                )

    with emit.loop(b.parts) as part, emit.loop(b.piece_panels) as slot:
        panel = piece * b.piece_panels + slot
        # A piece past the end computes the last panel again.
        panel = tirx.min(panel, b.panels - 1) if b.panels % b.piece_panels else panel
        right = panel_of(panel, part * b.steps)
        offset = turn = 0
        for tiles, size in cuts.split_extent(b.chunk, b.tile):
            with emit.loop(tiles) as t:
                tile(panel, slot, part, right, offset + t * size, size, turn + t)
            offset += tiles * size
            turn += tiles
