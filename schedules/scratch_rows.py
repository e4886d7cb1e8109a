"""Rows of scratch memory that a kernel walks over at one position."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit

_LINE = emit.LINE_BYTES // 4


class ScratchRows:
    """Rows an odd number of cache lines apart, so that they are in different sets of a cache.

    They are one dimension: of two, TVM would cut off the columns that nothing uses.

    Parameters
    ----------
    rows : int
    floats : int
        The least that a row holds.
    """

    def __init__(self, rows: int, floats: int) -> None:
        self._pitch = (-(-floats // _LINE) | 1) * _LINE
        self._flat = emit.workspace((rows * self._pitch,))

    def load(self, row: Any, column: Any) -> tirx.Expr:
        """An element."""
        return self._flat[row * self._pitch + column]

    def store(self, row: Any, column: Any, value: tirx.Expr) -> None:
        """Set an element."""
        T.buffer_store(self._flat, value, [row * self._pitch + column])
