"""Relay's requantization: integers of one scale and zero point as those of another.

Its default multiplies by ``scale / output_scale`` as a fixed-point number: a significand of 31 bits
and a power of two, the product in 64 bits, rounded and shifted back. That is exact in integers, so
results here are Relay's bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.elementwise import cast_to, emit_round
from tvm_ext.frontend.relay.registry import OpCall

ROUNDINGS = ("UPWARD", "TONEAREST")
COMPUTE_DTYPES = ("int64", "float32", "float64")


@dataclass(frozen=True)
class Scale:
    """What an integer q stands for: ``(q - zero_point) * scale``.

    Attributes
    ----------
    scale : np.ndarray
        float32; one number, or one for each element along an axis.
    zero_point : np.ndarray
        int32; likewise.
    """

    scale: np.ndarray
    zero_point: np.ndarray

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Scale)
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )

    def along(self, axis: int, rank: int) -> Scale:
        """The same, in shapes that broadcast along one axis of a tensor."""
        shape = [-1 if i == axis % rank else 1 for i in range(rank)]
        scale, zero = (
            x.reshape(()) if x.size == 1 else x.reshape(shape)
            for x in (self.scale, self.zero_point)
        )
        return Scale(scale, zero)


def scale_of(call: OpCall, scale: int, zero_point: int) -> Scale:
    """The scale and zero point that two arguments are; they must be known at import."""
    return Scale(
        call.known(scale, "scale").astype("float32"),
        call.known(zero_point, "zero point").astype("int32"),
    )


def requantized(
    call: OpCall,
    data: relax.Expr,
    source: Scale,
    target: Scale,
    dtype: str,
    *,
    axis: int = -1,
    rounding: str = "UPWARD",
    compute_dtype: str = "int64",
) -> relax.Expr:
    """Return integers of another scale and zero point.

    Parameters
    ----------
    call : OpCall
        Emits.
    data : relax.Expr
        Integers of at most 32 bits.
    source, target : Scale
        Before and after; `target` has one number.
    dtype : str
        The result's; values beyond it become its ends.
    axis : int
        Along which `source` has several numbers.
    rounding, compute_dtype : str
        One of `ROUNDINGS`, one of `COMPUTE_DTYPES`.
    """
    if rounding not in ROUNDINGS:
        raise ModelError(f"rounding is {rounding!r}; it must be one of {', '.join(ROUNDINGS)}")
    if compute_dtype not in COMPUTE_DTYPES:
        raise ModelError(
            f"compute_dtype is {compute_dtype!r}; it must be one of {', '.join(COMPUTE_DTYPES)}"
        )
    if target.scale.size != 1 or target.zero_point.size != 1:
        raise ModelError("the output has several scales; it must have one")
    source, target = source.along(axis, len(shape_of(data))), target.along(0, 1)
    centred = centre(call, data, source.zero_point)
    if compute_dtype != "int64":
        scaled = _scaled(call, centred, source, target, rounding, compute_dtype)
    elif np.array_equal(source.scale, target.scale):
        scaled = centred
    else:
        ratio = source.scale.astype("float64") / target.scale.astype("float64")
        scaled = fixed_point(call, centred, *multiplier_and_shift(ratio), rounding)
    if target.zero_point:
        scaled = call.emit(relax.op.add, scaled, const(target.zero_point))
    return saturated(call, scaled, dtype)


def fixed_point(
    call: OpCall, data: relax.Expr, multiplier: np.ndarray, shift: np.ndarray, rounding: str
) -> relax.Expr:
    """Return ``data * multiplier * 2**(shift - 31)`` of int32 data, in exact integers.

    Parameters
    ----------
    call : OpCall
    data : relax.Expr
        int32.
    multiplier, shift : np.ndarray
        Whole numbers that broadcast against `data`; 0 <= multiplier < 2**31, -31 <= shift < 31.
    rounding : str
        What half a unit becomes: the next larger ("UPWARD"), or the one further from zero
        ("TONEAREST").

    Returns
    -------
    relax.Expr
        int32.
    """
    wide = call.emit(relax.op.astype, data, "int64")
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0) + 31
    if left.any():
        wide = call.emit(relax.op.left_shift, wide, const(left, "int64"))
    product = call.emit(relax.op.multiply, wide, const(multiplier, "int64"))
    half = np.left_shift(np.ones_like(right, "int64"), right - 1)
    if rounding == "TONEAREST":
        positive = call.emit(relax.op.greater_equal, product, const(0, "int64"))
        rounder = call.emit(
            relax.op.where, positive, const(half, "int64"), const(half - 1, "int64")
        )
    else:
        rounder = const(half, "int64")
    rounded = call.emit(relax.op.add, product, rounder)
    shifted = call.emit(relax.op.right_shift, rounded, const(right, "int64"))
    return call.emit(relax.op.astype, shifted, "int32")


def multiplier_and_shift(ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split numbers into m and s with ``ratio ~ m * 2**(s - 31)`` and m of 31 bits."""
    significand, exponent = np.frexp(ratio)
    # Half a unit goes away from zero; nothing here is negative.
    multiplier = np.floor(significand * 2**31 + 0.5).astype("int64")
    full = multiplier == 2**31
    return np.where(full, multiplier // 2, multiplier), np.where(full, exponent + 1, exponent)


def centre(call: OpCall, data: relax.Expr, zero_point: np.ndarray) -> relax.Expr:
    """Return ``data - zero_point`` in int32."""
    wide = cast_to(call, data, "int32")
    if not zero_point.any():
        return wide
    return call.emit(relax.op.subtract, wide, const(zero_point, "int32"))


def saturated(call: OpCall, data: relax.Expr, dtype: str) -> relax.Expr:
    """Return int32 values as a narrower integer, those beyond it as its ends."""
    if dtype == dtype_of(data):
        return data
    limits = np.iinfo(dtype)
    return call.emit(relax.op.astype, call.emit(relax.op.clip, data, limits.min, limits.max), dtype)


def _scaled(
    call: OpCall,
    centred: relax.Expr,
    source: Scale,
    target: Scale,
    rounding: str,
    dtype: str,
) -> relax.Expr:
    """The multiplication in floats."""
    ratio = source.scale.astype(dtype) / target.scale.astype(dtype)
    real = call.emit(relax.op.astype, centred, dtype)
    real = call.emit(relax.op.multiply, real, const(ratio, dtype))
    if rounding == "UPWARD":
        half = call.emit(relax.op.add, real, const(0.5, dtype))
        whole = call.emit(relax.op.floor, half)
    else:
        whole = emit_round(call, real)
    return call.emit(relax.op.astype, whole, "int32")
