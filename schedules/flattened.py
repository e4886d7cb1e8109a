"""Products of flattened feature maps, which they can read in channel blocks.

A blocked map holds the elements of each sample in another order. Once the rows of the constant
right side stand in that order too, the product is the same, and nothing has to be converted.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tvm_ext.schedules.layout import blocked_order
from tvm_ext.schedules.matmul import weight_matrix
from tvm_ext.schedules.matmul_workload import MatmulWorkload


def reads_blocks(w: MatmulWorkload, lanes: int) -> bool:
    """Whether the left side is (N, C, *spatial), each sample a row, and C fills blocks of lanes."""
    shape = w.lhs_shape
    if not w.packed or not 3 <= len(shape) <= 5 or shape[1] % lanes:
        return False
    rows = w.lhs.shape == (shape[0], prod(shape[1:]))
    return rows and w.lhs.is_contiguous and w.lhs.offset == 0


def reordered(w: MatmulWorkload, weight: np.ndarray, block: int) -> np.ndarray:
    """The right side with its rows in the order of a left side of channel blocks.

    Parameters
    ----------
    w : MatmulWorkload
        One that `reads_blocks`.
    weight : ndarray
        As the model has it.
    block : int
        Of the left side; 0 leaves the rows as they are.
    """
    if not block:
        return weight
    moved = np.array(weight, order="C")
    # Written through the view, the result has whatever order of dimensions the model's has.
    weight_matrix(w, moved)[...] = weight_matrix(w, weight)[blocked_order(w.lhs_shape, block)]
    return moved
