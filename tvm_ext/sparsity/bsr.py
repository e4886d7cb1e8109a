"""Block compressed sparse rows: of each row of blocks, those that aren't all zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvm_ext.sparsity.blocks import from_blocks, to_blocks
from tvm_ext.sparsity.index_dtype import index_dtype


@dataclass(frozen=True)
class Bsr:
    """A matrix in block compressed sparse rows, the `bsr_array` of SciPy for any shape.

    A matrix that its blocks don't divide is padded with zeros. Columns and pointers count blocks;
    each array has the smallest dtype of uint16, int32 and int64 that holds what it counts. A block
    is kept whole, the signs of its zeros too; in the others a zero comes back as +0.0.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the matrix.
    values : ndarray
        (kept, height, width): blocks, one row of blocks after the other.
    columns : ndarray of uint16, int32 or int64
        (kept,): which block of its row each is, rising inside a row.
    pointers : ndarray of uint16, int32 or int64
        (block rows + 1,): block row r keeps [pointers[r], pointers[r + 1]).
    """

    shape: tuple[int, int]
    values: np.ndarray
    columns: np.ndarray
    pointers: np.ndarray

    @classmethod
    def from_dense(cls, matrix: np.ndarray, block: tuple[int, int]) -> Bsr:
        """The blocks that hold a value other than zero (NaN is one).

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
        blocks = to_blocks(matrix, block)
        rows, columns = np.nonzero((blocks != 0).any(axis=(2, 3)))
        pointers = np.searchsorted(rows, np.arange(len(blocks) + 1))
        return cls(
            matrix.shape,
            blocks[rows, columns],
            columns.astype(index_dtype(blocks.shape[1] - 1)),
            pointers.astype(index_dtype(len(rows))),
        )

    def to_dense(self) -> np.ndarray:
        """The matrix."""
        _, height, width = self.values.shape
        down, across = len(self.pointers) - 1, -(-self.shape[1] // width)
        blocks = np.zeros((down, across, height, width), self.values.dtype)
        rows = np.repeat(np.arange(down), np.diff(self.pointers))
        blocks[rows, self.columns] = self.values
        return from_blocks(blocks, self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the values and of the structure."""
        return self.values.nbytes + self.structure_nbytes

    @property
    def structure_nbytes(self) -> int:
        """Bytes of columns and pointers."""
        return self.columns.nbytes + self.pointers.nbytes
