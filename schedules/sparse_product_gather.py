"""One row times sorted panels of a sparse matrix: the row's elements are gathered one by one.

Gather instructions are no faster than the loads that they stand for, and slower where processors
were patched against leaks through them. So vectors of four lanes are put together, lane by lane.
Columns are two bytes each where that is enough, as the bytes of weights and columns bind large
layers; four of them are read as one number and taken apart by shifts, because reading each would be
half of all loads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.pointer_run import pointer_run
from tvm_ext.schedules.sparse_product_sorted import SortedPanels
from tvm_ext.schedules.sparse_product_store import each_vector
from tvm_ext.schedules.sparse_product_weights import column_dtype

# Lanes that one vector gathers, whatever the target's vectors are.
GATHER_LANES = 4
_WORD_BITS = 64
# Cycles that a nonzero takes, and a panel beside them.
_NONZERO_CYCLES = 0.85
_PANEL_CYCLES = 25.0


def gather_cycles(stored: float, panels: int) -> float:
    """Cycles of so many stored weights in so many panels."""
    return _NONZERO_CYCLES * stored + _PANEL_CYCLES * panels


class GatheredSums:
    """The arguments and loops of `SortedPanels` of `size` outputs of n, with k columns."""

    def __init__(self, n: int, k: int, size: int, panels: int, pieces: int) -> None:
        self._n, self._size, self._panels, self._pieces = n, size, panels, pieces
        self._dtype = column_dtype(k)
        self._bits = 8 * np.dtype(self._dtype).itemsize

    def pack(self, panels: SortedPanels) -> list[np.ndarray]:
        """The arrays in the order of the arguments."""
        columns = panels.columns.astype(self._dtype)
        return [panels.values, columns, panels.pointers, panels.places, panels.shares]

    def declare(self) -> None:
        """The arguments."""
        self._steps = tirx.Var("steps", "int32")
        self._values = emit.argument("values", (self._steps, self._size))
        self._columns = emit.argument("columns", (self._steps, self._size), self._dtype)
        self._pointers = emit.argument("pointers", (self._panels + 1,), "int32")
        self._places = emit.argument("places", (self._n,), "int32")
        self._shares = emit.argument("shares", (self._pieces + 1,), "int32")

    def view(self) -> None:
        """The columns as words."""
        count = self._size * self._bits // _WORD_BITS
        self._words = emit.view(self._columns, (self._steps, count), "uint64")

    def task(self, piece: Any, row: Callable[[Any], tirx.Expr]) -> Callable[[Any], tirx.Expr]:
        """Sum the panels of a piece.

        Parameters
        ----------
        row : callable
            The row's element at an int32 column.

        Returns
        -------
        callable
            The sum of an output of the piece.
        """
        line = emit.workspace((self._panels * self._size,))
        firsts = range(0, self._size, GATHER_LANES)
        with pointer_run(self._shares, piece) as panel:
            sums = [emit.RegisterTile(1, 1, GATHER_LANES) for _ in firsts]
            for acc in sums:
                acc.zero()
            with pointer_run(self._pointers, panel) as step:
                for first, acc in zip(firsts, sums, strict=True):
                    vector = self._gather(row, step, first)
                    acc.fill(
                        lambda r, c, lane, acc=acc, first=first, vector=vector: (
                            acc.get(r, c, lane) + self._values[step, first + lane] * vector[lane]
                        )
                    )
            for first, acc in zip(firsts, sums, strict=True):
                acc.each(
                    lambda r, c, lane, acc=acc, first=first: T.buffer_store(
                        line, acc.get(r, c, lane), [panel * self._size + first + lane]
                    )
                )
        return lambda output: line[self._places[output]]

    def store(
        self, piece: Any, lanes: int, out: Any, place: Callable[[Any], Any],
        element: Callable[[Any], tirx.Expr],
    ) -> None:  # fmt: skip
        """Store the outputs of a piece.

        Parameters
        ----------
        lanes : int
            Of the vectors that are stored.
        place, element : callable
            Where in `out` an output is, and what it is.
        """

        def run(first: Any, width: int) -> None:
            with emit.loop(width, "vectorized") as lane:
                T.buffer_store(out, element(first + lane), [place(first + lane)])

        with pointer_run(self._shares, piece) as panel:
            each_vector(panel, self._size, self._n, lanes, run)

    def _gather(self, row: Callable[[Any], tirx.Expr], step: Any, first: int) -> Any:
        """What the columns of the outputs from `first` on find in the row."""
        vector = T.alloc_buffer((GATHER_LANES,), "float32", scope="global")
        mask = tirx.const((1 << self._bits) - 1, "uint64")
        for lane in range(GATHER_LANES):
            word, shift = divmod((first + lane) * self._bits, _WORD_BITS)
            if lane == 0 or shift == 0:
                held = emit.hold(self._words[step, word])
            column = T.cast((held >> tirx.const(shift, "uint64")) & mask, "int32")
            T.buffer_store(vector, row(column), [lane])
        return vector
