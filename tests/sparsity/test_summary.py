"""Counts of a layer's zeros."""

import numpy as np
import pytest

from tests.sparsity.matrices import random_sparse
from tvm_ext.sparsity import summarize
from tvm_ext.sparsity.summary import PANEL_ROWS


def test_by_hand():
    weights = np.zeros((4, 2, 1, 3), "float32")
    weights[0, 0, 0, 1] = weights[1, 0, 0, 1] = weights[3, 1, 0, 2] = 1
    found = summarize(weights)
    assert (found.weights, found.nonzeros, found.density) == (24, 3, 0.125)
    # Panels of one row keep all three, of two rows the pair as one, of four all again.
    assert [found.kept(lanes) for lanes in (1, 2, 4, 8, 16)] == [3, 2, 2, 2, 2]


@pytest.mark.parametrize("lanes", PANEL_ROWS)
def test_weights_pruned_in_panels_keep_no_zeros(lanes):
    shared = random_sparse(4, 60, 0.3)
    found = summarize(np.repeat(shared, lanes, axis=0))
    assert found.kept(lanes) * lanes == found.nonzeros


@pytest.mark.parametrize(("zeros", "sparse"), [(0, False), (4, False), (5, True), (6, True)])
def test_weights_with_hardly_any_zeros_are_dense(zeros, sparse):
    weights = np.ones((10, 10), "float32")
    weights.reshape(-1)[:zeros] = 0
    assert (summarize(weights) is not None) == sparse


def test_nan_is_not_zero_and_negative_zero_is():
    found = summarize(np.array([[np.nan, -0.0]], "float32"))
    assert found.nonzeros == found.kept(1) == 1


def test_all_zero():
    found = summarize(np.zeros((16, 9), "float32"))
    assert (found.density, found.kept(1)) == (0, 0)
