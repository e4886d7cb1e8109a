"""The register tile of int8 products: positions x vectors of output channels, in int32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import vectors
from tvm_ext.schedules.dot_product import DotProduct

Index = Any


class IntegerTile:
    """rows x columns vectors of int32 sums that LLVM keeps in registers."""

    def __init__(self, rows: int, columns: int, lanes: int) -> None:
        self.rows, self.columns, self.lanes = rows, columns, lanes
        self._sums = [
            [T.alloc_buffer((lanes,), "int32", scope="global") for _ in range(columns)]
            for _ in range(rows)
        ]

    def zero(self) -> None:
        """Set all sums to zero."""
        nothing = vectors.constant(0, "int32", self.lanes)
        for row in self._sums:
            for vector in row:
                vectors.store(vector, nothing, [0], self.lanes)

    def get(self, row: int, column: int) -> tirx.Expr:
        """One vector of sums."""
        return vectors.load(self._sums[row][column], [0], self.lanes)

    def accumulate(
        self, dot: DotProduct, word: Callable[[int], tirx.Expr], weights: Callable[[int], tirx.Expr]
    ) -> None:
        """Add the products of ``word(row)``, a scalar, and ``weights(column)``, a vector."""
        for row in range(self.rows):
            data = vectors.spread(word(row), self.lanes)
            for column in range(self.columns):
                total = dot.accumulate(self.get(row, column), data, weights(column), self.lanes)
                vectors.store(self._sums[row][column], total, [0], self.lanes)
