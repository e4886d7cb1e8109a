"""The constant right side of a matrix product, as sparse kernels see and refuse it."""

from __future__ import annotations

import numpy as np

from tvm_ext.schedules.base import Support, refuse
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul import constant_right_side
from tvm_ext.schedules.matmul_workload import MatmulWorkload

_SHORT = 1 << 16


def sparse_right_side(w: MatmulWorkload) -> Support:
    """Whether a product is one of rows with a float32 weight that has zeros."""
    support = constant_right_side(w)
    if support and w.sparsity is None:
        return refuse("hardly any weight is zero")
    return support


def filters(w: MatmulWorkload, weight: np.ndarray) -> np.ndarray:
    """The weight's view, with a row for each of the n outputs: (n, k)."""
    view = fold_batch(w).rhs
    strides = [s * weight.itemsize for s in view.strides]
    return np.lib.stride_tricks.as_strided(weight.reshape(-1)[view.offset :], view.shape, strides).T


def column_dtype(k: int) -> str:
    """The type of a column's number among k: half the bytes where they are enough."""
    return "uint16" if k <= _SHORT else "int32"
