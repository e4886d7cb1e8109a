"""Square tiles transposed in registers, for every vector width that a target has."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules.snippets import run_snippet
from tvm_ext.schedules.lane_transpose import store_vector, transpose, vector_at


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_rows_become_columns(lanes, dtype):
    tile = np.arange(lanes * lanes).reshape(lanes, lanes).astype(dtype)

    def body(source, out):
        transpose(
            lanes,
            dtype,
            lambda i: vector_at(source, [i, 0], lanes),
            lambda j, vector: store_vector(out, vector, [j, 0], lanes),
        )

    got = run_snippet(body, tile, shape=(lanes, lanes), dtype=dtype)
    np.testing.assert_array_equal(got, tile.T)


def test_vectors_may_start_anywhere():
    row = np.arange(2 * 11, dtype="float32").reshape(2, 11)

    def body(source, out):
        store_vector(out, vector_at(source, [1, 5], 4), [0, 3], 4)

    got = run_snippet(body, row, shape=(1, 8), before=-1.0)
    np.testing.assert_array_equal(got, [[-1, -1, -1, 16, 17, 18, 19, -1]])
