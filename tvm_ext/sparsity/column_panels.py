"""Panels of neighbouring rows that share the columns in which they aren't zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ColumnPanels:
    """A matrix cut into panels of `lanes` rows; each panel keeps the columns that it needs.

    The rows of a panel are the filters of one vector register: what is stored of a column is a
    whole vector, so a kernel multiplies without asking which of them are zero. The last panel of a
    matrix whose rows don't fill it is padded with zeros.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the matrix.
    values : ndarray
        (kept, lanes), the panels one after the other.
    columns : ndarray of int32
        (kept,): the column of each vector, rising inside a panel.
    pointers : ndarray of int32
        (panels + 1,): panel p keeps [pointers[p], pointers[p + 1]).
    """

    shape: tuple[int, int]
    values: np.ndarray
    columns: np.ndarray
    pointers: np.ndarray

    @classmethod
    def from_dense(cls, matrix: np.ndarray, lanes: int) -> ColumnPanels:
        """The columns of each panel that hold a value other than zero (NaN is one).

        Parameters
        ----------
        matrix : ndarray
            (rows, columns).
        lanes : int
            Rows of a panel.
        """
        panels = _panels(matrix, lanes)
        panel, columns = np.nonzero((panels != 0).any(axis=1))
        pointers = np.searchsorted(panel, np.arange(len(panels) + 1)).astype("int32")
        values = np.ascontiguousarray(panels[panel, :, columns])
        return cls(matrix.shape, values, columns.astype("int32"), pointers)

    def to_dense(self) -> np.ndarray:
        """The matrix."""
        lanes, panels = self.values.shape[1], len(self.pointers) - 1
        dense = np.zeros((panels, lanes, self.shape[1]), self.values.dtype)
        panel = np.repeat(np.arange(panels), np.diff(self.pointers))
        dense[panel, :, self.columns] = self.values
        return dense.reshape(panels * lanes, -1)[: self.shape[0]]

    @property
    def nbytes(self) -> int:
        """Bytes of the values and of the structure."""
        return self.values.nbytes + self.structure_nbytes

    @property
    def structure_nbytes(self) -> int:
        """Bytes of columns and pointers."""
        return self.columns.nbytes + self.pointers.nbytes


def count_vectors(matrix: np.ndarray, lanes: int) -> int:
    """How many vectors `ColumnPanels` would keep of a (rows, columns) matrix."""
    return int(np.count_nonzero((_panels(matrix, lanes) != 0).any(axis=1)))


def _panels(matrix: np.ndarray, lanes: int) -> np.ndarray:
    """(rows, columns) as (panels, lanes, columns), padded with rows of zeros."""
    rows = matrix.shape[0]
    missing = -rows % lanes
    if missing:
        matrix = np.pad(matrix, [(0, missing), (0, 0)])
    return matrix.reshape((rows + missing) // lanes, lanes, -1)


def equal_shares(pointers: np.ndarray, pieces: int) -> np.ndarray:
    """Panels cut into runs that keep about the same.

    Returns
    -------
    ndarray of int32
        (pieces + 1,): piece p has the panels [shares[p], shares[p + 1]).
    """
    wanted = np.arange(pieces + 1) * pointers[-1] / pieces
    shares = np.searchsorted(pointers, wanted)
    # The nearer of the two pointers that a cut falls between.
    lower = np.maximum(shares - 1, 0)
    nearer = wanted - pointers[lower] < pointers[np.minimum(shares, len(pointers) - 1)] - wanted
    shares = np.where(nearer, lower, shares)
    shares[0], shares[-1] = 0, len(pointers) - 1
    return np.maximum.accumulate(shares).astype("int32")
