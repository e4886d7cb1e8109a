"""Blocks with pruned rows and columns: by hand, counted with loops, and round trips."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sparsity.matrices import assert_restored, matrices
from tvm_ext.errors import OptionError
from tvm_ext.sparsity import PrunedBlocks

BLOCKS = st.tuples(st.integers(1, 7), st.integers(1, 7))


def block_pruned(rows, columns, block, seed=0):
    """A matrix of ones in which each block has lost some rows and some columns."""
    rng = np.random.default_rng(seed)
    matrix = np.ones((rows, columns), "float32")
    for top in range(0, rows, block[0]):
        for left in range(0, columns, block[1]):
            part = matrix[top : top + block[0], left : left + block[1]]
            part[rng.random(part.shape[0]) < 0.5] = 0
            part[:, rng.random(part.shape[1]) < 0.5] = 0
    return matrix


def test_by_hand():
    matrix = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 4], [0, 0, 0, 0]], "float32")
    blocks = PrunedBlocks.from_dense(matrix, (4, 2))
    assert blocks.values.tolist() == [1, 3, 2, 4]
    assert (blocks.rows.tolist(), blocks.row_pointers.tolist()) == ([0, 2, 0, 2], [0, 2, 4])
    assert (blocks.columns.tolist(), blocks.column_pointers.tolist()) == ([1, 1], [0, 1, 2])
    assert blocks.structure_nbytes == (4 + 3 + 2 + 3) * 2
    assert blocks.nbytes == 4 * 4 + 12 * 2


@given(matrices(), BLOCKS)
def test_round_trip(matrix, block):
    assert_restored(PrunedBlocks.from_dense(matrix, block).to_dense(), matrix)


@pytest.mark.parametrize("shape", [(16, 36), (17, 35), (3, 100), (1, 1)])
@pytest.mark.parametrize("block", [(4, 4), (16, 9), (5, 7)])
def test_block_pruning_leaves_no_zero_to_store(shape, block):
    matrix = block_pruned(*shape, block)
    blocks = PrunedBlocks.from_dense(matrix, block)
    assert len(blocks.values) == np.count_nonzero(matrix)
    assert (blocks.values == 1).all()
    np.testing.assert_array_equal(blocks.to_dense(), matrix)


@given(matrices(), BLOCKS)
def test_what_is_kept_counted_block_by_block(matrix, block):
    kept = {"values": 0, "rows": 0, "columns": 0}
    for top in range(0, matrix.shape[0], block[0]):
        for left in range(0, matrix.shape[1], block[1]):
            part = matrix[top : top + block[0], left : left + block[1]]
            rows = sum(bool(np.count_nonzero(row)) for row in part)
            columns = sum(bool(np.count_nonzero(column)) for column in part.T)
            kept["rows"] += rows
            kept["columns"] += columns
            kept["values"] += rows * columns
    blocks = PrunedBlocks.from_dense(matrix, block)
    assert {name: len(getattr(blocks, name)) for name in kept} == kept


def test_signs_of_zeros_are_kept_inside_kept_rows_and_columns_alone():
    matrix = np.array([[1.0, -0.0], [-0.0, 2.0], [-0.0, -0.0]], "float32")
    restored = PrunedBlocks.from_dense(matrix, (3, 2)).to_dense()
    assert np.signbit(restored).tolist() == [[False, True], [True, False], [False, False]]


def test_an_empty_block_is_refused():
    with pytest.raises(OptionError, match=r"block \(0, 3\)"):
        PrunedBlocks.from_dense(np.ones((4, 4)), (0, 3))
