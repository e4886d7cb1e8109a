"""Compressed sparse rows against SciPy's, by hand, and round trips."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given

from tests.sparsity.matrices import assert_restored, bits, matrices, random_sparse
from tvm_ext.sparsity import Csr


def test_by_hand():
    csr = Csr.from_dense(np.array([[0, 5, 0], [0, 0, 0], [6, 0, 7]], "float32"))
    assert csr.shape == (3, 3)
    assert csr.values.tolist() == [5, 6, 7]
    assert csr.columns.tolist() == [1, 0, 2]
    assert csr.pointers.tolist() == [0, 1, 1, 3]
    assert csr.structure_nbytes == (3 + 4) * 2
    assert csr.nbytes == 3 * 4 + (3 + 4) * 2


@given(matrices())
def test_round_trip(matrix):
    csr = Csr.from_dense(matrix)
    assert_restored(csr.to_dense(), matrix)
    assert len(csr.values) == np.count_nonzero(matrix)
    np.testing.assert_array_equal(bits(csr.to_dense())[matrix == 0], 0)


@pytest.mark.parametrize("density", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (64, 576), (17, 63)])
def test_same_arrays_as_scipy(shape, density):
    matrix = random_sparse(*shape, density)
    ours, theirs = Csr.from_dense(matrix), scipy.sparse.csr_array(matrix)
    np.testing.assert_array_equal(ours.values, theirs.data)
    np.testing.assert_array_equal(ours.columns, theirs.indices)
    np.testing.assert_array_equal(ours.pointers, theirs.indptr)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8"])
def test_other_dtypes(dtype):
    matrix = np.array([[0, 3], [-4, 0]], dtype)
    csr = Csr.from_dense(matrix)
    assert csr.values.dtype == csr.to_dense().dtype == dtype
    np.testing.assert_array_equal(csr.to_dense(), matrix)


@pytest.mark.parametrize(
    ("columns", "dtype"), [(65535, "uint16"), (65536, "uint16"), (65537, "int32")]
)
def test_columns_count_in_a_row_and_pointers_count_values(columns, dtype):
    matrix = np.zeros((2, columns), "float32")
    matrix[:, -1] = 1
    csr = Csr.from_dense(matrix)
    assert (csr.columns.dtype, csr.pointers.dtype) == (dtype, "uint16")
    assert_restored(csr.to_dense(), matrix)


@pytest.mark.parametrize(("nonzeros", "dtype"), [(65535, "uint16"), (65536, "int32")])
def test_pointers_hold_the_number_of_values(nonzeros, dtype):
    matrix = np.zeros((512, 256), "int8")
    matrix.reshape(-1)[:nonzeros] = 1
    csr = Csr.from_dense(matrix)
    assert (csr.columns.dtype, csr.pointers.dtype) == ("uint16", dtype)
    np.testing.assert_array_equal(csr.to_dense(), matrix)
