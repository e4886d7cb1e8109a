"""Vectors of neighbouring elements as expressions; one element is a scalar."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit, lane_transpose


def load(buffer: Any, index: list[Any], lanes: int) -> tirx.Expr:
    """`lanes` neighbouring elements that start at `index`."""
    return buffer[tuple(index)] if lanes == 1 else lane_transpose.vector_at(buffer, index, lanes)


def store(buffer: Any, value: tirx.Expr, index: list[Any], lanes: int) -> None:
    """Write `lanes` neighbouring elements that start at `index`."""
    if lanes == 1:
        T.buffer_store(buffer, value, index)
    else:
        lane_transpose.store_vector(buffer, value, index, lanes)


def hold(value: tirx.Expr, dtype: str, lanes: int) -> tirx.Expr:
    """`lanes` elements computed once, here, however often the result is used."""
    return emit.hold(value) if lanes == 1 else lane_transpose.hold_vector(value, dtype, lanes)


def spread(value: tirx.Expr, lanes: int) -> tirx.Expr:
    """A scalar in every lane."""
    return value if lanes == 1 else tirx.Broadcast(value, lanes)


def constant(value: float, dtype: str, lanes: int) -> tirx.Expr:
    """A number in every lane."""
    return spread(tirx.const(value, dtype), lanes)


def vector_type(dtype: str, lanes: int) -> str:
    """The name of a vector's type."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def cast(value: tirx.Expr, dtype: str, lanes: int) -> tirx.Expr:
    """A vector's elements as another type."""
    return tirx.Cast(vector_type(dtype, lanes), value)


def reinterpret(value: tirx.Expr, dtype: str, lanes: int) -> tirx.Expr:
    """A vector's bits as a vector of `lanes` elements of another type."""
    return tirx.reinterpret(vector_type(dtype, lanes), value)
