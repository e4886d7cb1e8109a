"""The outputs of a panel, stored in vectors: fewer where the last panel is longer than the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit


def each_vector(
    panel: Any, size: int, extent: int, lanes: int, body: Callable[[Any, int], None]
) -> None:
    """Call `body(first, lanes)` for vectors that cover the panel's part of [0, extent).

    Parameters
    ----------
    panel : Expr
        It is [panel * size, panel * size + size), as far as it lies in the extent.
    """

    def cover(count: int) -> None:
        emit.cover(count, lanes, lambda at, width: body(panel * size + at, width))

    if extent % size == 0:
        cover(size)
    elif extent < size:
        cover(extent)
    else:
        with T.If(panel < extent // size):
            with T.Then():
                cover(size)
            with T.Else():
                cover(extent % size)
