"""What the cost models know of a layer's zeros: counts of what sparse kernels store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tvm_ext.sparsity.column_panels import count_vectors
from tvm_ext.sparsity.kernel_patterns import MOST_TAPS, KernelPatterns

# Rows of the panels that sparse kernels take.
PANEL_ROWS = (1, 2, 4, 8, 16)
# A layer with more nonzero weights than this share is dense: no sparse kernel could win.
DENSE = 0.95


@dataclass(frozen=True)
class Sparsity:
    """Counts of a layer's weights, seen as a (filters, rest) matrix.

    Attributes
    ----------
    weights : int
        All of them.
    nonzeros : int
    vectors : tuple of (int, int)
        For each number of rows a panel, the vectors that `ColumnPanels` keeps.
    patterns : KernelPatterns, optional
        Of two-dimensional kernels of several taps.
    """

    weights: int
    nonzeros: int
    vectors: tuple[tuple[int, int], ...]
    patterns: KernelPatterns | None = None

    @classmethod
    def of(cls, weights: np.ndarray) -> Sparsity:
        """The counts of (filters, ...) weights."""
        matrix = weights.reshape(len(weights), -1)
        vectors = tuple((rows, count_vectors(matrix, rows)) for rows in PANEL_ROWS)
        patterned = weights.ndim == 4 and 1 < prod(weights.shape[2:]) <= MOST_TAPS
        patterns = KernelPatterns.of(weights) if patterned else None
        return cls(weights.size, int(np.count_nonzero(weights)), vectors, patterns)

    @property
    def density(self) -> float:
        """Share of the weights that aren't zero."""
        return self.nonzeros / self.weights

    def at_density(self, density: float) -> Sparsity:
        """The counts of weights whose zeros lie likewise, but are more or fewer."""
        factor = density / self.density if self.nonzeros else 0.0
        # A panel can't keep more vectors than it has columns.
        vectors = tuple((r, min(round(n * factor), self.weights // r)) for r, n in self.vectors)
        patterns = self.patterns.scaled(factor) if self.patterns is not None else None
        nonzeros = round(self.weights * density)
        return replace(self, nonzeros=nonzeros, vectors=vectors, patterns=patterns)

    def kept(self, rows: int) -> int:
        """Vectors that `ColumnPanels` keeps with so many rows a panel."""
        return dict(self.vectors)[rows]


def summarize(weights: np.ndarray) -> Sparsity | None:
    """The counts of (filters, ...) weights; None if hardly any is zero.

    Parameters
    ----------
    weights : ndarray
        Of any shape; the first dimension is the filters'.
    """
    dense = not weights.size or np.count_nonzero(weights) > DENSE * weights.size
    return None if dense else Sparsity.of(weights)
