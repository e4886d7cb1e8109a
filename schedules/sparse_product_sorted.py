"""Panels of rows, sorted by how many nonzeros they have, each row with columns of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvm_ext.sparsity import equal_shares
from tvm_ext.sparsity.run_pointers import run_pointers


@dataclass(frozen=True)
class SortedPanels:
    """A matrix whose rows are taken `rows` at a time, as many nonzeros each as the longest has.

    What a kernel reads in one step, one nonzero of each row, lies side by side. Rows are sorted
    inside of each share, so that those of a panel are about as long; what is missing is stored as
    zeros at a row's own last column. That is SELL-C-sigma (Kreutzer et al., "A Unified Sparse
    Matrix Data Format for Efficient General Sparse Matrix-Vector Multiplication on Modern
    Processors with Wide SIMD Units", 2014), with C rows and a share as sigma.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the matrix.
    values : ndarray
        (steps, rows), the panels one after the other.
    columns : ndarray of int32
        (steps, rows): the column of each value.
    pointers : ndarray of int32
        (panels + 1,): panel p has the steps [pointers[p], pointers[p + 1]).
    places : ndarray of int32
        (matrix rows,): where a row is among the sorted ones. It stays inside its share.
    shares : ndarray of int32
        (pieces + 1,): runs of panels with about as many nonzeros, and so of the matrix's rows.
    """

    shape: tuple[int, int]
    values: np.ndarray
    columns: np.ndarray
    pointers: np.ndarray
    places: np.ndarray
    shares: np.ndarray

    @classmethod
    def from_dense(cls, matrix: np.ndarray, rows: int, shares: np.ndarray) -> SortedPanels:
        """The values other than zero (NaN is one).

        Parameters
        ----------
        matrix : ndarray
            (rows, columns).
        rows : int
            Of a panel.
        shares : ndarray of int
            (pieces + 1,): the panels of each share, such as `equal_rows` gives.
        """
        n, width = matrix.shape
        panels = -(-n // rows)
        padded = np.pad(matrix, [(0, panels * rows - n), (0, 0)])
        counts = np.count_nonzero(padded, axis=1)
        share = np.searchsorted(shares, np.arange(len(padded)) // rows, side="right")
        order = np.lexsort((-counts, share))
        places = np.empty(len(order), "int32")
        places[order] = np.arange(len(order))

        padded, counts = padded[order], counts[order]
        lengths = counts.reshape(panels, rows).max(axis=1)
        pointers = run_pointers(lengths, "int32")
        row, column = np.nonzero(padded)
        ends = np.cumsum(counts)
        step = pointers[row // rows] + np.arange(len(row)) - (ends - counts)[row]
        last = np.zeros(len(padded), "int32")
        last[row] = column  # the last of a row's assignments, which are in rising order
        columns = np.repeat(last.reshape(panels, rows), lengths, axis=0)
        values = np.zeros(columns.shape, matrix.dtype)
        columns[step, row % rows] = column
        values[step, row % rows] = padded[row, column]
        return cls((n, width), values, columns, pointers, places[:n], shares.astype("int32"))

    def to_dense(self) -> np.ndarray:
        """The matrix."""
        rows, panels = self.values.shape[1], len(self.pointers) - 1
        dense = np.zeros((panels, rows, self.shape[1]), self.values.dtype)
        panel = np.repeat(np.arange(panels), np.diff(self.pointers))
        # Zeros that are stored share a column with a value.
        np.add.at(dense, (panel[:, None], np.arange(rows), self.columns), self.values)
        return dense.reshape(panels * rows, -1)[self.places]


def equal_rows(matrix: np.ndarray, rows: int, pieces: int) -> np.ndarray:
    """Shares of the panels of `rows` rows with about as many nonzeros each: (pieces + 1,)."""
    panels = -(-len(matrix) // rows)
    counts = np.pad(np.count_nonzero(matrix, axis=1), (0, panels * rows - len(matrix)))
    return equal_shares(run_pointers(counts.reshape(panels, rows).sum(axis=1)), pieces)
