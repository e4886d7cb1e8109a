"""`SortedPanels`: exact round trips, and a hand-worked example."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tvm_ext.schedules.sparse_product_sorted import SortedPanels, equal_rows

_VALUES = st.sampled_from([0.0, 0.0, 0.0, 1.5, -2.0, np.inf, np.nan])


@given(
    arrays("float32", st.tuples(st.integers(1, 11), st.integers(1, 6)), elements=_VALUES),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 3),
)
def test_round_trip(matrix: np.ndarray, rows: int, pieces: int) -> None:
    panels = SortedPanels.from_dense(matrix, rows, equal_rows(matrix, rows, pieces))
    np.testing.assert_array_equal(panels.to_dense(), matrix)


def test_hand_worked() -> None:
    """Rows with 1, 3, 0, 2 and 1 nonzeros; the first two panels of two rows are one share."""
    matrix = np.array(
        [[0, 0, 5, 0], [1, 2, 0, 3], [0, 0, 0, 0], [0, 6, 7, 0], [8, 0, 0, 0]], "float32"
    )
    panels = SortedPanels.from_dense(matrix, 2, equal_rows(matrix, 2, 2))
    assert panels.shares.tolist() == [0, 1, 3]
    # The second share's rows are 2 to 5, the last of which only fills the panel.
    assert panels.places.tolist() == [1, 0, 4, 2, 3]
    assert panels.pointers.tolist() == [0, 3, 5, 5]
    assert panels.values.tolist() == [[1, 5], [2, 0], [3, 0], [6, 8], [7, 0]]
    assert panels.columns.tolist() == [[0, 2], [1, 2], [3, 2], [1, 0], [2, 0]]


def test_rows_are_padded_to_the_longest_of_their_panel_only() -> None:
    """Sorted, 64 rows with 0 to 63 nonzeros take 4 at a time little more than they have."""
    rng = np.random.default_rng(0)
    matrix = np.tril(np.ones((64, 64), "float32"), -1)[rng.permutation(64)]
    panels = SortedPanels.from_dense(matrix, 4, equal_rows(matrix, 4, 1))
    assert panels.values.size == sum(4 * longest for longest in range(3, 64, 4))
    np.testing.assert_array_equal(panels.to_dense(), matrix)
