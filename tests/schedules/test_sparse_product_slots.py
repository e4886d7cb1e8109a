"""`Slots`: exact round trips, and a hand-worked example."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tvm_ext.schedules.sparse_product_slots import Slots

_VALUES = st.sampled_from([0.0, 0.0, 0.0, 1.5, -2.0, np.inf, np.nan])


@given(
    arrays("float32", st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=_VALUES),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_round_trip(matrix: np.ndarray, width: int, slots: int) -> None:
    np.testing.assert_array_equal(Slots.from_dense(matrix, width, slots).to_dense(), matrix)


def test_hand_worked() -> None:
    """Two segments of three columns, the second of which the matrix doesn't fill."""
    matrix = np.array([[1, 2, 3, 0, 4], [0, 0, 5, 0, 0]], "float32")
    slots = Slots.from_dense(matrix, 3, 2)
    assert slots.values.tolist() == [[[1, 2], [4, 0]], [[5, 0], [0, 0]]]
    assert slots.places.tolist() == [[[0, 1], [1, 3]], [[2, 3], [3, 3]]]
    assert slots.rest.tolist() == [[0, 0, 3, 0, 0], [0, 0, 0, 0, 0]]
