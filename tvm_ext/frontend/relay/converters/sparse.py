"""Sparse matrices that are known at import: they become dense constants with zeros.

`build` finds the zeros again, and chooses a format and a kernel for them.
"""

from __future__ import annotations

from math import prod

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, scalar, shape_of
from tvm_ext.frontend.relay.converters.linear import multiply
from tvm_ext.frontend.relay.registry import OpCall, converts

_PARTS = ("data", "indices", "indptr")


@converts("nn.sparse_dense", "nn.internal.sparse_dense_padded")
def convert_sparse_dense(call: OpCall) -> relax.Expr:
    """Convert ``dense @ sparse.T``, or ``sparse @ dense.T`` with ``sparse_lhs``."""
    dense = call.tensor(0)
    sparse = const(_matrix(call, 1, shape_of(dense)[1]))
    if call.attr("sparse_lhs", False):
        return multiply(call, sparse, dense, False, True)
    return multiply(call, dense, sparse, False, True)


@converts("nn.sparse_add")
def convert_sparse_add(call: OpCall) -> relax.Expr:
    """Convert the sum of a dense and a sparse matrix."""
    dense = call.tensor(0)
    return relax.op.add(dense, const(_matrix(call, 1, shape_of(dense)[1])))


@converts("nn.sparse_transpose")
def convert_sparse_transpose(call: OpCall) -> list[relax.Expr]:
    """Convert the transpose of a square matrix in compressed rows, to such rows again."""
    data, indices, indptr = (call.known(i, part) for i, part in enumerate(_PARTS))
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    counts = np.bincount(indices, minlength=indptr.size - 1)
    starts = np.concatenate([[0], np.cumsum(counts)])
    parts = (data[order], rows[order].astype(indices.dtype), starts.astype(indptr.dtype))
    return [const(part) for part in parts]


@converts("nn.sparse_conv2d")
def convert_sparse_conv2d(call: OpCall) -> relax.Expr:
    """Convert a convolution of 1 x 1 with sparse weights (filters, channels)."""
    kernel = [int(n) for n in call.attr("kernel_size", [1, 1])]
    layout = str(call.attr("layout", "NHWC"))
    if kernel != [1, 1] or layout not in ("NHWC", "NCHW"):
        raise ModelError(
            f"kernel_size is {kernel} and layout {layout!r}; 1 x 1 in NHWC or NCHW is supported"
        )
    data = call.tensor(0)
    weight = _matrix(call, 1, shape_of(data)[layout.index("C")])
    if layout == "NHWC":
        return multiply(call, data, const(weight), False, True)
    return relax.op.nn.conv2d(data, const(weight[:, :, None, None]))


@converts("sparse_to_dense", "dyn.sparse_to_dense")
def convert_sparse_to_dense(call: OpCall) -> relax.Expr:
    """Convert values at places, (n, dimensions), to a tensor with a default elsewhere."""
    places, values, default = (call.tensor(i) for i in range(3))
    shape = call.ints("output_shape", 3)
    whole = call.emit(relax.op.broadcast_to, call.cast(default, dtype_of(values)), tuple(shape))
    # Places of a vector are its indices; a single one has no dimension at all.
    count = shape_of(places)[0] if shape_of(places) else 1
    places = call.emit(relax.op.reshape, call.cast(places, "int64"), (count, len(shape)))
    values = call.emit(relax.op.broadcast_to, values, (count,))
    return relax.op.scatter_nd(whole, places, values, "update")


@converts("sparse_reshape")
def convert_sparse_reshape(call: OpCall) -> list[relax.Expr]:
    """Convert places (n, dimensions) in one shape to those in another, and that shape."""
    places = call.tensor(0)
    before, after = ([int(n) for n in call.known(i, "shape")] for i in (1, 2))
    if -1 in after:
        after[after.index(-1)] = prod(before) // -prod(after)
    if prod(before) != prod(after):
        raise ModelError(f"the shape {before} can't become {after}")
    sizes = np.asarray([prod(before[i + 1 :]) for i in range(len(before))], dtype_of(places))
    flat = call.emit(relax.op.sum, call.emit(relax.op.multiply, places, const(sizes)), [1])
    columns = []
    for size in reversed(after):
        columns.append(call.emit(relax.op.floor_mod, flat, scalar(size, flat)))
        flat = call.emit(relax.op.floor_divide, flat, scalar(size, flat))
    shape = const(np.asarray(after), dtype_of(call.tensor(2)))
    return [call.emit(relax.op.stack, columns[::-1], 1), shape]


def _matrix(call: OpCall, first: int, columns: int) -> np.ndarray:
    """Rows of a sparse matrix from three arguments, its elements numbers or blocks."""
    data, indices, indptr = (call.known(first + i, part) for i, part in enumerate(_PARTS))
    if data.ndim not in (1, 3):
        raise ModelError(f"sparse data has {data.ndim} dimensions; it must have 1 or 3")
    blocks = data.reshape(-1, 1, 1) if data.ndim == 1 else data
    height, width = blocks.shape[1:]
    matrix = np.zeros(((indptr.size - 1) * height, columns), data.dtype)
    tiles = matrix.reshape(indptr.size - 1, height, columns // width, width)
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    # What padding adds behind the last row isn't part of the matrix.
    stored = indptr[-1]
    if stored > len(indices) or (indices[:stored] >= tiles.shape[2]).any():
        raise ModelError(f"the sparse matrix has indices beyond its {columns} columns")
    for row, column, block in zip(rows, indices, blocks, strict=False):
        tiles[row, :, column] += block
    return matrix
