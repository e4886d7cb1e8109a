"""Pruning of rows and columns inside blocks of the weight matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tvm_ext.errors import OptionError
from tvm_ext.passes.pruning.block_cost import block_seconds
from tvm_ext.passes.pruning.options import check_choice, check_count, check_density
from tvm_ext.passes.pruning.ranking import largest_filling, largest_in_rows
from tvm_ext.passes.pruning.scheme import Scheme, Shape
from tvm_ext.sparsity.summary import PANEL_ROWS

SCOPES = ("layer", "block")
# A finer block is taken if it is estimated to be slower than the fastest by no more than this.
_SLOWER = 1.1

Block = tuple[int, int]
Cost = Callable[[Shape, Block, float], float]


@dataclass(frozen=True)
class BlockPrune(Scheme):
    """Cut the weight matrix into blocks, and keep some of the columns and rows inside each.

    The matrix is (filters, inputs of a filter * taps): what a convolution multiplies with when it
    is computed as a matrix product. A column of a block are the weights of neighbouring filters at
    the same tap of the same input. Columns and rows are ranked by their mean squares. Works for
    layers of every type.

    Parameters
    ----------
    density : float
        Share of the weights that is kept, in (0, 1].
    block : (int, int) or ``"auto"``
        Filters and columns of a block. Where they don't divide the matrix, the last blocks are
        smaller. ``"auto"`` decides for each layer: blocks are as wide as the matrix, and have the
        fewest filters of 1, 2, 4, 8 and 16 that come within 10 % of the fastest.
    row_density : float
        Share of the rows that is kept, in (0, 1]; the columns are chosen after them, so that
        `density` results.
    scope : str
        ``"layer"``: the columns of all blocks compete, and the rows. ``"block"``: every block keeps
        the same share.
    cost : callable, optional
        For ``"auto"``: shape of the weights, block, density -> seconds. By default, the estimate of
        the compiler's cost model for this machine, `block_cost.block_seconds`.

    Raises
    ------
    OptionError
        An option has another value.

    Notes
    -----
    Block-based column and row pruning is from XGen (2022, section 2.1.2). Finer blocks are more
    accurate and slower (its figure 6).
    """

    density: float
    block: Block | str = "auto"
    row_density: float = 1.0
    scope: str = "layer"
    cost: Cost | None = None

    def __post_init__(self) -> None:
        check_density("density", self.density)
        check_density("row_density", self.row_density)
        check_choice("scope", self.scope, SCOPES)
        if self.density > self.row_density:
            raise OptionError(
                f"density={self.density!r} is more than row_density={self.row_density!r} leaves"
            )
        if self.block == "auto":
            return
        if not isinstance(self.block, (tuple, list)) or len(self.block) != 2:
            raise OptionError(f"block={self.block!r} has to be (rows, columns) or 'auto'")
        for side, size in zip(("rows", "columns"), self.block, strict=True):
            check_count(f"block {side}", size)
        object.__setattr__(self, "block", tuple(self.block))

    def block_of(self, shape: Shape) -> Block:
        """The block for weights of this shape: as given, or as ``"auto"`` decides."""
        if not isinstance(self.block, str):
            return self.block
        cost, width = self.cost or block_seconds, prod(shape[1:])
        heights = [rows for rows in PANEL_ROWS if rows == 1 or rows <= shape[0]]
        seconds = [cost(shape, (rows, width), self.density) for rows in heights]
        limit = _SLOWER * min(seconds)
        rows = next(r for r, s in zip(heights, seconds, strict=True) if s <= limit)
        return rows, width

    def mask(self, weights: np.ndarray) -> np.ndarray:
        squares = weights.reshape(len(weights), -1).astype("float64") ** 2
        rows, columns = np.minimum(self.block_of(weights.shape), squares.shape)
        energy = _blocks(squares, rows, columns)
        kept = _blocks(np.ones(squares.shape, bool), rows, columns)
        if self.row_density < 1:
            kept &= self._chosen(energy, kept, 3, self.row_density)
            energy = energy * kept
        kept &= self._chosen(energy, kept, 2, self.density / self.row_density)
        down, across = kept.shape[:2]
        matrix = kept.transpose(0, 2, 1, 3).reshape(down * rows, across * columns)
        return matrix[: squares.shape[0], : squares.shape[1]].reshape(weights.shape)

    def densities(self, shape: Shape) -> tuple[float, float]:
        return 0.0, self.row_density

    def at_density(self, density: float, shape: Shape) -> BlockPrune:
        return replace(self, density=density)

    def _chosen(self, energy: np.ndarray, kept: np.ndarray, axis: int, share: float) -> np.ndarray:
        """Which rows or columns of blocks stay: those along `axis`, with 1 in its place.

        Parameters
        ----------
        energy, kept : ndarray
            (blocks down, blocks across, rows, columns): squares of the weights that are left, and
            where there are any.
        axis : int
        share : float
            Of these weights.
        """
        sizes = kept.sum(axis)
        means = np.where(sizes > 0, energy.sum(axis) / np.maximum(sizes, 1), -1.0)
        if self.scope == "layer":
            chosen = largest_filling(means, sizes, share * sizes.sum())
        else:
            there = np.count_nonzero(sizes, axis=-1)
            chosen = largest_in_rows(means, np.maximum(1, np.floor(share * there + 0.5)))
        return np.expand_dims(chosen, axis)


def _blocks(matrix: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """A matrix padded with zeros as (blocks down, blocks across, rows, columns)."""
    down, across = -(-matrix.shape[0] // rows), -(-matrix.shape[1] // columns)
    missing = [(0, down * rows - matrix.shape[0]), (0, across * columns - matrix.shape[1])]
    padded = np.pad(matrix, missing) if any(m for _, m in missing) else matrix
    return padded.reshape(down, rows, across, columns).transpose(0, 2, 1, 3)
