"""Blocks in which whole rows and whole columns are zero: each a small dense matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvm_ext.sparsity.blocks import from_blocks, to_blocks
from tvm_ext.sparsity.index_dtype import index_dtype


@dataclass(frozen=True)
class PrunedBlocks:
    """A matrix whose blocks keep some of their rows and some of their columns, all of them dense.

    This is what the block pruning of XGen (2022, section 2.1.2) leaves: rows and columns are pruned
    in each block by itself. A block's values are its kept rows x kept columns, zeros among them and
    their signs included; all other zeros come back as +0.0. Blocks lie row of blocks by row of
    blocks; a matrix that they don't divide is padded with zeros.

    Rows and columns are counted in a block and pointers in rows or columns kept; each array has the
    smallest dtype of uint16, int32 and int64 that holds what it counts.

    Attributes
    ----------
    shape, block : tuple of int
        Rows and columns of the matrix, height and width of a block.
    values : ndarray
        (sum over the blocks of kept rows x kept columns,), block by block and row by row.
    rows, columns : ndarray of uint16, int32 or int64
        What each block keeps, one block after the other, rising inside a block.
    row_pointers, column_pointers : ndarray of uint16, int32 or int64
        (blocks + 1,): block b keeps rows [row_pointers[b], row_pointers[b + 1]), and columns alike.
    """

    shape: tuple[int, int]
    block: tuple[int, int]
    values: np.ndarray
    rows: np.ndarray
    row_pointers: np.ndarray
    columns: np.ndarray
    column_pointers: np.ndarray

    @classmethod
    def from_dense(cls, matrix: np.ndarray, block: tuple[int, int]) -> PrunedBlocks:
        """Of each block, the rows and columns that hold a value other than zero (NaN is one).

        Parameters
        ----------
        matrix : ndarray
            (rows, columns).
        block : tuple of int
            Height and width of a block.

        Raises
        ------
        OptionError
            A block of fewer than one row or column.
        """
        blocks = to_blocks(matrix, block).reshape(-1, *block)
        rows, columns = (blocks != 0).any(axis=2), (blocks != 0).any(axis=1)
        values = blocks[rows[:, :, None] & columns[:, None, :]]
        return cls(matrix.shape, block, values, *_indices(rows), *_indices(columns))

    def to_dense(self) -> np.ndarray:
        """The matrix."""
        counts = [-(-n // b) for n, b in zip(self.shape, self.block, strict=True)]
        blocks = np.zeros((counts[0] * counts[1], *self.block), self.values.dtype)
        rows = _mask(self.rows, self.row_pointers, self.block[0])
        columns = _mask(self.columns, self.column_pointers, self.block[1])
        blocks[rows[:, :, None] & columns[:, None, :]] = self.values
        return from_blocks(blocks.reshape(*counts, *self.block), self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the values and of the structure."""
        return self.values.nbytes + self.structure_nbytes

    @property
    def structure_nbytes(self) -> int:
        """Bytes of the indices of rows and columns, and of their pointers."""
        structure = (self.rows, self.row_pointers, self.columns, self.column_pointers)
        return sum(array.nbytes for array in structure)


def _indices(kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a (blocks, n) mask is true: indices below n, and where each block's begin."""
    block, index = np.nonzero(kept)
    pointers = np.searchsorted(block, np.arange(len(kept) + 1))
    return (
        index.astype(index_dtype(kept.shape[1] - 1)),
        pointers.astype(index_dtype(len(index))),
    )


def _mask(indices: np.ndarray, pointers: np.ndarray, extent: int) -> np.ndarray:
    """The (blocks, extent) mask that `_indices` took apart."""
    blocks = len(pointers) - 1
    kept = np.zeros((blocks, extent), bool)
    kept[np.repeat(np.arange(blocks), np.diff(pointers)), indices] = True
    return kept
