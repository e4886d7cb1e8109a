"""Compressed sparse rows: of each row, the values that aren't zero and their columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvm_ext.sparsity.index_dtype import index_dtype


@dataclass(frozen=True)
class Csr:
    """A matrix in compressed sparse rows.

    The rows of a convolution's matrix are its filters, flattened to (in_channels / groups x taps)
    columns, as in Baghdadi et al., "Tiramisu" (2020, section 3).

    Columns are counted in a row and pointers in all values; each array has the smallest dtype of
    uint16, int32 and int64 that holds what it counts. A zero of either sign isn't stored, and comes
    back as +0.0; all other values, NaNs and infinities too, come back bit for bit.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the matrix.
    values : ndarray
        (nonzeros,), row by row.
    columns : ndarray of uint16, int32 or int64
        (nonzeros,): the column of each value, rising inside a row.
    pointers : ndarray of uint16, int32 or int64
        (rows + 1,): row r has the values [pointers[r], pointers[r + 1]).
    """

    shape: tuple[int, int]
    values: np.ndarray
    columns: np.ndarray
    pointers: np.ndarray

    @classmethod
    def from_dense(cls, matrix: np.ndarray) -> Csr:
        """The nonzero values of a (rows, columns) matrix."""
        rows, columns = np.nonzero(matrix)
        pointers = np.searchsorted(rows, np.arange(matrix.shape[0] + 1))
        return cls(
            matrix.shape,
            matrix[rows, columns],
            columns.astype(index_dtype(matrix.shape[1] - 1)),
            pointers.astype(index_dtype(len(rows))),
        )

    def to_dense(self) -> np.ndarray:
        """The matrix."""
        dense = np.zeros(self.shape, self.values.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.pointers))
        dense[rows, self.columns] = self.values
        return dense

    @property
    def nbytes(self) -> int:
        """Bytes of the values and of the structure."""
        return self.values.nbytes + self.structure_nbytes

    @property
    def structure_nbytes(self) -> int:
        """Bytes of columns and pointers."""
        return self.columns.nbytes + self.pointers.nbytes
