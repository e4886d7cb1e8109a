"""A matrix of which each row keeps a fixed number of values in every few columns, and the rest.

A kernel can look up what it multiplies in a table of those few columns, and has no branch or
pointer to follow. The number of slots is a compromise: unused ones are stored as zeros, and what is
too much for them goes into a matrix of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Slots:
    """Segments of `width` columns, in which each row has `slots` values and their places.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the matrix.
    width : int
        Columns of a segment.
    values : ndarray
        (rows, segments, slots). Slots that aren't used hold zeros.
    places : ndarray of uint8
        (rows, segments, slots): the column of each value, from the segment's first; `width` where
        the slot isn't used.
    rest : ndarray
        (rows, columns), what has no slot; else zeros.
    """

    shape: tuple[int, int]
    width: int
    values: np.ndarray
    places: np.ndarray
    rest: np.ndarray

    @classmethod
    def from_dense(cls, matrix: np.ndarray, width: int, slots: int) -> Slots:
        """The values other than zero (NaN is one), of each segment the first ones in slots.

        Parameters
        ----------
        matrix : ndarray
            (rows, columns).
        """
        n, columns = matrix.shape
        segments = -(-columns // width)
        padded = np.pad(matrix, [(0, 0), (0, segments * width - columns)])
        row, segment, place = np.nonzero(padded.reshape(n, segments, width))
        run = row * segments + segment
        slot = np.arange(len(run)) - np.searchsorted(run, run)
        values = np.zeros((n, segments, slots), matrix.dtype)
        places = np.full(values.shape, width, "uint8")
        held = slot < slots
        at = row[held], segment[held], slot[held]
        found = padded[row, segment * width + place]
        values[at], places[at] = found[held], place[held]
        rest = np.zeros_like(matrix)
        left = row[~held], (segment * width + place)[~held]
        rest[left] = found[~held]
        return cls((n, columns), width, values, places, rest)

    def to_dense(self) -> np.ndarray:
        """The matrix."""
        n, columns = self.shape
        dense = np.zeros((n, self.values.shape[1], self.width + 1), self.values.dtype)
        np.put_along_axis(dense, self.places.astype("int64"), self.values, axis=2)
        used = dense[:, :, : self.width].reshape(n, -1)[:, :columns]
        return np.where(self.rest != 0, self.rest, used)
