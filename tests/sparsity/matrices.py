"""Matrices with all kinds of zeros and values, and what a sparse format must give back of them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

NEGATIVE_ZERO = 0x80000000


@st.composite
def matrices(draw: st.DrawFn, most: int = 12) -> np.ndarray:
    """Float32 matrices of 0 to `most` rows and columns, most values zero.

    The others have any bits: NaNs with a payload, infinities, subnormal numbers, -0.0.
    """
    shape = draw(st.tuples(st.integers(0, most), st.integers(0, most)))
    bits = st.integers(0, 2**32 - 1) | st.just(NEGATIVE_ZERO)
    return draw(arrays("uint32", shape, elements=bits, fill=st.just(0))).view("float32")


def assert_restored(actual: np.ndarray, matrix: np.ndarray) -> None:
    """Equal in shape, dtype and bits, but for the sign of zeros."""
    assert actual.shape == matrix.shape
    assert actual.dtype == matrix.dtype
    nonzero = matrix != 0
    np.testing.assert_array_equal(bits(actual)[nonzero], bits(matrix)[nonzero])
    assert (actual[~nonzero] == 0).all()


def bits(matrix: np.ndarray) -> np.ndarray:
    """The bits of float32 values."""
    return np.ascontiguousarray(matrix).view("uint32")


def random_sparse(rows: int, columns: int, density: float, seed: int = 0) -> np.ndarray:
    """A float32 matrix with values at about `density` of its places."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, columns))
    return np.where(rng.random((rows, columns)) < density, values, 0).astype("float32")
