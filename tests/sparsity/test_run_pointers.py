"""Pointers of runs, by hand."""

import numpy as np
import pytest

from tvm_ext.sparsity.run_pointers import run_pointers


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_by_hand(dtype):
    found = run_pointers(np.array([2, 0, 3], "uint8"), dtype)
    assert found.tolist() == [0, 2, 2, 5]
    assert found.dtype == dtype


def test_small_integers_do_not_overflow():
    assert run_pointers(np.full(4, 200, "uint8")).tolist() == [0, 200, 400, 600, 800]


def test_no_runs():
    assert run_pointers(np.zeros(0, "int64")).tolist() == [0]
