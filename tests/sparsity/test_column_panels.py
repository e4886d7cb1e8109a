"""Column panels: by hand, round trips, counts; shares of about the same size."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sparsity.matrices import assert_restored, matrices, random_sparse
from tvm_ext.sparsity import ColumnPanels, Csr, equal_shares
from tvm_ext.sparsity.column_panels import count_vectors


def test_by_hand():
    matrix = np.array([[1, 0, 0], [0, 0, 2], [0, 0, 3]], "float32")
    panels = ColumnPanels.from_dense(matrix, 2)
    assert panels.values.tolist() == [[1, 0], [0, 2], [3, 0]]
    assert panels.columns.tolist() == [0, 2, 2]
    assert panels.pointers.tolist() == [0, 2, 3]
    assert panels.structure_nbytes == (3 + 3) * 4
    assert panels.nbytes == 6 * 4 + 6 * 4


@given(matrices().filter(lambda matrix: matrix.size), st.integers(1, 17))
def test_round_trip(matrix, lanes):
    assert_restored(ColumnPanels.from_dense(matrix, lanes).to_dense(), matrix)


@given(matrices().filter(lambda matrix: matrix.size), st.integers(1, 17))
def test_vectors_counted_panel_by_panel(matrix, lanes):
    wanted = sum(
        bool(np.count_nonzero(matrix[first : first + lanes, column]))
        for first in range(0, len(matrix), lanes)
        for column in range(matrix.shape[1])
    )
    assert count_vectors(matrix, lanes) == len(ColumnPanels.from_dense(matrix, lanes).values)
    assert count_vectors(matrix, lanes) == wanted


def test_panels_of_one_row_are_compressed_sparse_rows():
    matrix = random_sparse(13, 90, 0.2)
    panels, csr = ColumnPanels.from_dense(matrix, 1), Csr.from_dense(matrix)
    np.testing.assert_array_equal(panels.values[:, 0], csr.values)
    np.testing.assert_array_equal(panels.columns, csr.columns)
    np.testing.assert_array_equal(panels.pointers, csr.pointers)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40).map(np.array), st.integers(1, 12))
def test_every_share_is_within_one_panel_of_the_ideal(kept, pieces):
    pointers = np.concatenate([[0], np.cumsum(kept)])
    shares = equal_shares(pointers, pieces)
    assert shares.dtype == np.int32
    assert (shares[0], shares[-1], len(shares)) == (0, len(kept), pieces + 1)
    assert (np.diff(shares) >= 0).all()
    got = [kept[first:end].sum() for first, end in pairwise(shares)]
    assert sum(got) == kept.sum()
    assert np.abs(got - kept.sum() / pieces).max() <= kept.max()


@pytest.mark.parametrize(
    ("pointers", "pieces", "shares"),
    [
        ([0, 4, 8, 12, 16], 2, [0, 2, 4]),
        ([0, 1, 2, 3, 13], 2, [0, 3, 4]),
        ([0, 0, 0], 2, [0, 0, 2]),
        ([0, 5], 3, [0, 0, 1, 1]),
    ],
)
def test_shares_by_hand(pointers, pieces, shares):
    assert equal_shares(np.array(pointers), pieces).tolist() == shares
