"""Rank correlations by hand."""

import math

import pytest

from benchmarks.ranks import spearman


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ([1, 2, 3], [10, 20, 1000], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        # 1 - 6 (1 + 1) / (4 (16 - 1)).
        ([1, 2, 3, 4], [2, 1, 3, 4], 0.8),
        # Ranks 0.5, 0.5, 2 and 0, 1, 2: covariance 1.5, norms sqrt(1.5) and sqrt(2).
        ([1, 1, 2], [1, 2, 3], 1.5 / math.sqrt(3)),
    ],
)
def test_by_hand(a, b, wanted):
    assert spearman(a, b) == pytest.approx(wanted)
    assert spearman(b, a) == pytest.approx(wanted)


def test_without_an_order():
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))
