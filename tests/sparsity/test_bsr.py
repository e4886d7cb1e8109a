"""Block compressed sparse rows against SciPy's, by hand, and round trips."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from tests.sparsity.matrices import assert_restored, bits, matrices, random_sparse
from tvm_ext.errors import OptionError
from tvm_ext.sparsity import Bsr

BLOCKS = st.tuples(st.integers(1, 7), st.integers(1, 7))


def test_by_hand():
    matrix = np.array([[0, 0, 5], [0, 0, 0], [1, 0, 0]], "float32")
    bsr = Bsr.from_dense(matrix, (2, 2))
    assert bsr.values.tolist() == [[[5, 0], [0, 0]], [[1, 0], [0, 0]]]
    assert bsr.columns.tolist() == [1, 0]
    assert bsr.pointers.tolist() == [0, 1, 2]
    assert bsr.structure_nbytes == (2 + 3) * 2
    assert bsr.nbytes == 8 * 4 + (2 + 3) * 2


@given(matrices(), BLOCKS)
def test_round_trip(matrix, block):
    assert_restored(Bsr.from_dense(matrix, block).to_dense(), matrix)


@given(matrices(), BLOCKS)
def test_every_kept_block_holds_something(matrix, block):
    bsr = Bsr.from_dense(matrix, block)
    assert (bsr.values != 0).any(axis=(1, 2)).all()


def test_signs_of_zeros_are_kept_inside_kept_blocks_alone():
    matrix = np.array([[1.0, -0.0, -0.0, 0.0]], "float32")
    restored = Bsr.from_dense(matrix, (1, 2)).to_dense()
    assert np.signbit(restored).tolist() == [[False, True, False, False]]


@pytest.mark.parametrize("block", [(1, 1), (4, 4), (16, 1), (2, 9)])
@pytest.mark.parametrize("density", [0.0, 0.02, 1.0])
def test_same_arrays_as_scipy(block, density):
    matrix = random_sparse(32, 36, density)
    ours, theirs = Bsr.from_dense(matrix, block), scipy.sparse.bsr_array(matrix, blocksize=block)
    theirs.sort_indices()
    np.testing.assert_array_equal(bits(ours.values), bits(theirs.data))
    np.testing.assert_array_equal(ours.columns, theirs.indices)
    np.testing.assert_array_equal(ours.pointers, theirs.indptr)


def test_columns_count_blocks():
    matrix = np.zeros((1, 2 * 65536), "float32")
    matrix[0, -1] = 1
    assert Bsr.from_dense(matrix, (1, 2)).columns.dtype == "uint16"
    assert Bsr.from_dense(matrix, (1, 1)).columns.dtype == "int32"


def test_an_empty_block_is_refused():
    with pytest.raises(OptionError, match=r"block \(2, 0\)"):
        Bsr.from_dense(np.ones((4, 4)), (2, 0))
