"""Sparse tensors of an ONNX model, made dense: the planner finds the zeros by itself."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from onnx import external_data_helper, numpy_helper

from tvm_ext.errors import ModelError


def sparse_initializers(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """The dense values of a graph's sparse initialisers, by name.

    Raises
    ------
    ModelError
        One has no name or that of another initialiser, or isn't a valid sparse tensor.
    """
    dense: dict[str, np.ndarray] = {}
    taken = {tensor.name for tensor in graph.initializer}
    for sparse in graph.sparse_initializer:
        name = sparse.values.name
        if not name:
            raise ModelError(f"a sparse initialiser of shape {list(sparse.dims)} has no name")
        if name in taken or name in dense:
            raise ModelError(f"two initialisers have the name {name!r}, one of them sparse")
        dense[name] = dense_value(sparse, f"the sparse initialiser {name!r}")
    return dense


def dense_value(sparse: onnx.SparseTensorProto, what: str) -> np.ndarray:
    """A sparse tensor with its zeros filled in.

    Parameters
    ----------
    sparse : onnx.SparseTensorProto
        Values (n,) and their indices, int64: (n,) into the flattened tensor or (n, rank), rising.
    what : str
        What messages call it.

    Raises
    ------
    ModelError
        The indices are out of range, out of order or twice the same; they don't fit the values or
        the shape; or the data are damaged, strings, or in another file.
    """
    shape = tuple(sparse.dims)
    if any(extent < 0 for extent in shape):
        raise ModelError(f"{what} has the shape {list(shape)}")
    values, indices = (_array(tensor, what) for tensor in (sparse.values, sparse.indices))
    if values.ndim != 1:
        raise ModelError(f"{what} has values of shape {list(values.shape)}; it must be [n]")
    try:
        dense = np.zeros(shape, values.dtype)
    except (MemoryError, ValueError) as err:
        raise ModelError(f"{what} of shape {list(shape)} is too large to be made dense") from err
    dense.reshape(-1)[_flattened(indices, len(values), shape, what)] = values
    return dense


def _array(tensor: onnx.TensorProto, what: str) -> np.ndarray:
    if external_data_helper.uses_external_data(tensor):
        raise ModelError(f"{what} has its data in another file; only those inside are read")
    try:
        array = numpy_helper.to_array(tensor)
    except (TypeError, ValueError) as err:
        raise ModelError(f"{what} is damaged: {err}") from err
    if array.dtype == object:
        raise ModelError(f"{what} holds strings")
    return array


def _flattened(indices: np.ndarray, count: int, shape: tuple[int, ...], what: str) -> np.ndarray:
    """The indices as (n,) into the flattened tensor; all of them are checked."""
    if indices.dtype != np.int64:
        raise ModelError(f"{what} has indices of type {indices.dtype}; they must be int64")
    if indices.shape not in ((count,), (count, len(shape))):
        raise ModelError(
            f"{what} has indices of shape {list(indices.shape)}; for {count} values and the shape "
            f"{list(shape)} it must be [{count}] or [{count}, {len(shape)}]"
        )
    limits = (prod(shape),) if indices.ndim == 1 else shape
    rows = indices.reshape(count, len(limits))
    outside = ((rows < 0) | (rows >= np.array(limits, "int64"))).any(axis=1)
    if outside.any():
        at = int(np.argmax(outside))
        raise ModelError(
            f"{what} has the index {indices[at].tolist()} at position {at}, outside of the shape "
            f"{list(shape)}"
        )
    strides = np.array([prod(limits[i + 1 :]) for i in range(len(limits))], "int64")
    flat = rows @ strides
    falling = flat[1:] <= flat[:-1]
    if falling.any():
        at = int(np.argmax(falling)) + 1
        raise ModelError(
            f"{what} has the index {indices[at].tolist()} at position {at}, behind "
            f"{indices[at - 1].tolist()}; indices must rise, each only once"
        )
    return flat
