"""float32 values as sums of two or three bfloat16 terms, in words of two channels.

A term is what the terms before it leave of the value, rounded to bfloat16's 8 bits. With u = 2^-8,
two terms leave at most u^2 / 2 of a value, three u^3 / 4. Three products of terms, high * high +
high * low + low * high, then give x * y within 2 u^2 |x * y|, 2^-15; four, with low * low, within
u^2; six products of three terms within 2 u^3, less than float32's own rounding. (Henry, Tang and
Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
Computations", 2019.)

The first term of an infinity, and of what is above 2^128 - 2^119, is an infinity, and the second
NaN: products with these are NaN. NaN stays NaN. Terms below 2^-126 count as zero to AMX.

A word of 32 bits has a term of one channel in its lower 16 bits, and that of the channel `LANES`
further in its upper ones: so two vectors of channels make one of words without any shuffle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules.amx import DEPTH, LANES
from tvm_ext.schedules.emit import Index

_UPPER = 0xFFFF0000
_HALF = 0x8000
_SIGNLESS = 0x7FFFFFFF
_INFINITY = 0x7F800000


def store_words(
    first: Callable[[Index], tirx.Expr],
    second: Callable[[Index], tirx.Expr],
    terms: int,
    store: Callable[[int, Index, tirx.Expr], None],
) -> None:
    """Split two vectors of `LANES` float32 values, given by lane.

    `store` takes a term, a lane and the int32 word there.
    """
    rests = [_kept(first), _kept(second)]
    for term in range(terms):
        parts = [_kept(lambda lane, rest=rest: _rounded(rest[lane]), "uint32") for rest in rests]
        low, high = parts
        with T.vectorized(0, LANES) as lane:
            word = (low[lane] >> _const(16)) | high[lane]
            store(term, lane, tirx.reinterpret("int32", word))
        if term < terms - 1:
            rests = [
                _kept(
                    lambda lane, rest=rest, part=part: (
                        rest[lane] - tirx.reinterpret("float32", part[lane])
                    )
                )
                for rest, part in zip(rests, parts, strict=True)
            ]


def _kept(value: Callable[[Index], tirx.Expr], dtype: str = "float32") -> Any:
    """A vector in a buffer of its own, so that LLVM sees a register."""
    vector = T.alloc_buffer((LANES,), dtype, scope="global")
    with T.vectorized(0, LANES) as lane:
        T.buffer_store(vector, value(lane), [lane])
    return vector


def _rounded(x: tirx.Expr) -> tirx.Expr:
    """Bits of the nearest bfloat16 value, as the upper half of a float32's."""
    bits = tirx.reinterpret("uint32", x)
    # What is added would carry into the sign of a NaN.
    number = bits & _const(_SIGNLESS) <= _const(_INFINITY)
    return tirx.Select(number, bits + _const(_HALF), bits) & _const(_UPPER)


def split_array(values: np.ndarray, terms: int) -> np.ndarray:
    """Words of each of the terms, uint32 (terms, steps, LANES, n), of float32 (k, n).

    A step holds `DEPTH` rows; what the last one lacks is zero.
    """
    k, n = values.shape
    rest = np.zeros((-(-k // DEPTH) * DEPTH, n), "float32")
    rest[:k] = values
    words = []
    for _ in range(terms):
        bits = rest.view("uint32")
        number = (bits & np.uint32(_SIGNLESS)) <= _INFINITY
        part = np.where(number, bits + np.uint32(_HALF), bits) & np.uint32(_UPPER)
        pairs = part.reshape(-1, 2, LANES, n)
        words.append((pairs[:, 0] >> np.uint32(16)) | pairs[:, 1])
        with np.errstate(invalid="ignore"):  # of infinities
            rest = rest - part.view("float32")
    return np.stack(words)


def pack_panels(panels: np.ndarray, terms: int) -> np.ndarray:
    """Weights in the order in which the product reads them.

    Parameters
    ----------
    panels : ndarray
        float32 (panels, taps, k, blocks, LANES).

    Returns
    -------
    ndarray
        int32, flat: (panels, steps of k, taps, terms, blocks, LANES, LANES).
    """
    count, taps, k, blocks, lanes = panels.shape
    words = split_array(np.moveaxis(panels, 2, 0).reshape(k, -1), terms)
    words = words.reshape(*words.shape[:3], count, taps, blocks, lanes)
    ordered = np.ascontiguousarray(words.transpose(3, 1, 4, 0, 5, 2, 6))
    return ordered.reshape(-1).view("int32")


def _const(value: int) -> tirx.Expr:
    return tirx.const(value, "uint32")
