"""A matrix cut into blocks of one size, those at its ends padded with zeros."""

from __future__ import annotations

import numpy as np

from tvm_ext.errors import OptionError


def to_blocks(matrix: np.ndarray, block: tuple[int, int]) -> np.ndarray:
    """A (rows, columns) matrix as (block rows, block columns, height, width).

    Parameters
    ----------
    matrix : ndarray
        Where it ends inside a block, the rest of the block is zero.
    block : tuple of int
        Height and width of a block.

    Raises
    ------
    OptionError
        A block of fewer than one row or column.
    """
    if min(block) < 1:
        raise OptionError(f"block {block}: it needs at least one row and one column")
    counts = [-(-n // b) for n, b in zip(matrix.shape, block, strict=True)]
    padded = np.zeros([n * b for n, b in zip(counts, block, strict=True)], matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded.reshape(counts[0], block[0], counts[1], block[1]).transpose(0, 2, 1, 3)


def from_blocks(blocks: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The (rows, columns) matrix of `shape` that `to_blocks` cut."""
    down, across, height, width = blocks.shape
    whole = blocks.transpose(0, 2, 1, 3).reshape(down * height, across * width)
    return np.ascontiguousarray(whole[: shape[0], : shape[1]])
