"""TVM's binary form of an array, in parameter files and (as base64) in JSON graphs.

A magic number and a reserved word (uint64 each), the device (two int32), the rank (int32), the
dtype (uint8 code, uint8 bits, uint16 lanes), the shape (int64 each), the number of bytes of data
(int64), the data; all little-endian, row-major.
"""

from __future__ import annotations

import math
import struct

import ml_dtypes
import numpy as np

from tvm_ext.frontend.relay.errors import RelayError

MAGIC = 0xDD5E40F096B4A13F

_HEAD = struct.Struct("<QQiiiBBH")
_CPU = (1, 0)
# DLPack's dtype codes with their bits -> NumPy's. TVM's bool is a uint of one bit in a byte.
_DTYPES: dict[tuple[int, int], np.dtype] = {
    **{(0, bits): np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{(1, bits): np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{(2, bits): np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    (1, 1): np.dtype("bool"),
    (6, 8): np.dtype("bool"),
    (4, 16): np.dtype(ml_dtypes.bfloat16),
}
_CODES = {"int": 0, "uint": 1, "float": 2}


def read_ndarray(data: memoryview, offset: int, source: str) -> tuple[np.ndarray, int]:
    """Read one array.

    Parameters
    ----------
    data : memoryview of bytes
    offset : int
        Where the array begins.
    source : str
        What the bytes are, for errors.

    Returns
    -------
    array : ndarray
        A read-only view of `data` where its alignment allows.
    end : int
        The first byte behind it.

    Raises
    ------
    RelayError
        The bytes are truncated, are no array, or have a dtype that NumPy doesn't.
    """

    def fail(message: str) -> RelayError:
        return RelayError(message, source, f"byte {offset}")

    def need(end: int, what: str) -> None:
        if end > len(data):
            raise fail(f"the {what} of an array ends at byte {end}, the data at byte {len(data)}")

    at = offset + _HEAD.size
    need(at, "header")
    magic, _, _, _, rank, code, bits, lanes = _HEAD.unpack_from(data, offset)
    if magic != MAGIC:
        raise fail(f"an array begins with {MAGIC:#x}, here is {magic:#x}")
    if not 0 <= rank <= 32:
        raise fail(f"an array of rank {rank}: allowed are 0 to 32")
    dtype = _DTYPES.get((code, bits))
    if dtype is None or lanes != 1:
        raise fail(
            f"the dtype (code {code}, {bits} bits, {lanes} lanes) isn't one of "
            f"{sorted({str(d) for d in _DTYPES.values()})}"
        )
    need(at + 8 * rank + 8, "shape")
    *shape, nbytes = struct.unpack_from(f"<{rank + 1}q", data, at)
    at += 8 * rank + 8
    if any(dim < 0 for dim in shape) or nbytes != math.prod(shape) * dtype.itemsize:
        raise fail(f"shape {tuple(shape)} of {dtype} doesn't take {nbytes} bytes")
    need(at + nbytes, "data")
    little = dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype
    array = np.frombuffer(data[at : at + nbytes].toreadonly(), little).reshape(shape)
    return (array if array.flags.aligned else array.copy()), at + nbytes


def write_ndarray(array: np.ndarray) -> bytes:
    """One array's bytes.

    Raises
    ------
    RelayError
        The form has no such dtype.
    """
    name = array.dtype.name
    kind, bits = name.rstrip("0123456789"), 8 * array.dtype.itemsize
    if name == "bool":
        code, bits = 1, 1
    elif name == "bfloat16":
        code = 4
    elif kind in _CODES and (_CODES[kind], bits) in _DTYPES:
        code = _CODES[kind]
    else:
        raise RelayError(
            f"an array of {array.dtype} can't be written: allowed are "
            f"{sorted({str(d) for d in _DTYPES.values()})}"
        )
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    head = _HEAD.pack(MAGIC, 0, *_CPU, array.ndim, code, bits, 1)
    return head + struct.pack(f"<{array.ndim + 1}q", *array.shape, len(data)) + data
