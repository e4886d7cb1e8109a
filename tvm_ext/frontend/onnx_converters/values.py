"""What converters ask of Relax expressions: shape, dtype, constant value."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import tvm
from tvm import relax

from tvm_ext.errors import ModelError

_TILE = 256


def shape_of(expr: relax.Expr) -> tuple[int, ...]:
    """Return an expression's static shape."""
    return tuple(int(dim) for dim in expr.ty.shape)


def dtype_of(expr: relax.Expr) -> str:
    """Return an expression's element type, "float32" say."""
    return str(expr.ty.dtype.dtype)


def optional(inputs: Sequence[relax.Expr | None], index: int) -> relax.Expr | None:
    """Return an input, or None if the node leaves it out."""
    return inputs[index] if index < len(inputs) else None


def constant(expr: relax.Expr | None) -> np.ndarray | None:
    """Return the value of a Relax constant, None for anything else.

    A view where numpy knows the dtype: don't write to it.
    """
    if not isinstance(expr, tvm.ir.GenericConst):
        return None
    if np.dtype(dtype_of(expr)).kind in "fiu":
        return np.from_dlpack(expr.value)
    return expr.value.numpy()


def required_constant(expr: relax.Expr | None, what: str) -> np.ndarray:
    """Return the value of an input that must be known at import.

    Raises
    ------
    ModelError
        It's left out, or is computed at run time.
    """
    value = constant(expr)
    if value is None:
        raise ModelError(f"the input {what!r} must be constant")
    return value


def const(array: np.ndarray | float, dtype: str | None = None) -> relax.Expr:
    """Return a Relax constant of `array`."""
    array = np.asarray(array, dtype)
    if array.dtype.kind not in "biuf" or array.size == 0:
        return relax.const(np.asarray(array, order="C"), str(array.dtype))
    # Weights of hundreds of megabytes pass here: relax.const alone would copy each one twice.
    tensor = tvm.runtime.empty(array.shape, str(array.dtype))
    memory = (ctypes.c_uint8 * array.nbytes).from_address(tensor.data_ptr())
    _copy(np.frombuffer(memory, array.dtype).reshape(array.shape), array)
    return relax.const(tensor)


def _copy(target: np.ndarray, source: np.ndarray) -> None:
    """Copy; a transposed matrix goes tile by tile, so that both sides stay in cache."""
    if source.ndim != 2 or source.flags.c_contiguous:
        target[...] = source
        return
    rows, columns = source.shape
    for i in range(0, rows, _TILE):
        for j in range(0, columns, _TILE):
            tile = np.s_[i : i + _TILE, j : j + _TILE]
            target[tile] = source[tile]


def scalar(value: float, like: relax.Expr) -> relax.Expr:
    """Return a constant without dimensions that has the dtype of `like`."""
    return relax.const(value, dtype_of(like))


def reshaped(expr: relax.Expr, shape: Sequence[int]) -> relax.Expr:
    """Reshape at import if the value is known, otherwise in the graph."""
    value = constant(expr)
    if value is None:
        return relax.op.reshape(expr, tuple(shape))
    return const(value.reshape(shape))


def along_channels(vector: relax.Expr, rank: int) -> relax.Expr:
    """Return a vector as (1, C, 1, ...), the shape that adds to a feature map of `rank`."""
    return reshaped(vector, (1, *shape_of(vector), *[1] * (rank - 2)))
