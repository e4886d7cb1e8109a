"""Loads of every second (third, ...) element as a vector."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from tvm_ext.schedules.lane_transpose import vector_at


def load_strided(buffer: Any, index: list[Any], stride: int, lanes: int) -> tirx.Expr:
    """`lanes` elements, `stride` apart, from `index` on.

    A load an element is what TVM makes of strided vectors. These are whole vectors and a shuffle:
    all of the `stride * lanes` elements from `index` on are read, and have to be there.
    """
    *outer, first = index
    vectors = [vector_at(buffer, [*outer, first + i * lanes], lanes) for i in range(stride)]
    if stride == 1:
        return vectors[0]
    return tirx.Shuffle(vectors, [tirx.const(i * stride, "int32") for i in range(lanes)])
