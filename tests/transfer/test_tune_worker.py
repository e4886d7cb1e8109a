"""How outputs are compared."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tvm_ext.transfer.tune_worker import relative_error

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        ([1, 2, -4], [1, 2, -4], 0),
        ([1, 2.1, -4], [1, 2, -4], 0.1 / 4),
        ([NAN, INF, 4], [NAN, INF, 4], 0),
        ([NAN, 1, 4], [1, 1, 4], INF),
        ([1, INF, 4], [1, 1, 4], INF),
        ([1, 1, 4], [1, INF, 4], INF),
        ([-INF, 1, 4], [INF, 1, 4], INF),
        ([0, 0, 0], [0, 0, 0], 0),
    ],
)
def test_relative_error(found: list[float], expected: list[float], error: float) -> None:
    assert relative_error(np.array(found), np.array(expected)) == pytest.approx(error)


def test_integers() -> None:
    assert relative_error(np.array([3, 2]), np.array([3, 4])) == 0.5
    assert relative_error(np.zeros((0,)), np.zeros((0,))) == 0
