"""The error measure, by hand."""

import numpy as np
import pytest

from benchmarks.accuracy import max_relative_error


def test_max_relative_error_is_scaled_by_each_output():
    expected = [np.array([10.0, -20.0]), np.array([0.1, 0.0])]
    actual = [np.array([10.0, -19.0]), np.array([0.1, 0.02])]
    assert max_relative_error(actual, expected) == pytest.approx(0.2)
    assert max_relative_error(actual[0], expected[0]) == pytest.approx(0.05)


def test_max_relative_error_of_zeros_and_of_not_finite_values():
    assert max_relative_error(np.full(3, 0.25), np.zeros(3)) == 0.25
    assert max_relative_error(np.array([np.nan]), np.ones(1)) == np.inf


@pytest.mark.parametrize(
    ("actual", "message"),
    [
        ([np.zeros(2)] * 2, "2 outputs against 1"),
        (np.zeros((2, 1)), r"output 0 has shape \(2, 1\)"),
    ],
)
def test_max_relative_error_refuses(actual, message):
    with pytest.raises(ValueError, match=message):
        max_relative_error(actual, np.zeros(2))
