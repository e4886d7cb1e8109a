"""The largest scores, against sorting in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_ext.passes.pruning.ranking import count_of, largest, largest_filling, largest_in_rows

SCORES = st.lists(st.integers(0, 5), min_size=1, max_size=12)


def _best(scores: list[int], count: int) -> list[int]:
    """Places of the largest, the earlier of equal ones first."""
    return sorted(sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count])


@pytest.mark.parametrize(
    ("density", "total", "count"),
    [(0.5, 4, 2), (0.5, 5, 3), (0.25, 10, 3), (0.24, 10, 2), (0.001, 10, 1), (1.0, 7, 7)],
)
def test_counts_are_the_nearest_and_at_least_one(density: float, total: int, count: int) -> None:
    assert count_of(density, total) == count


@given(SCORES, st.integers(0, 13))
def test_largest_keeps_exactly_so_many(scores: list[int], count: int) -> None:
    kept = largest(np.array(scores, "float64"), count)
    assert np.flatnonzero(kept).tolist() == _best(scores, min(count, len(scores)))


@given(st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=5))
def test_rows_are_ranked_each_for_itself(rows: list[list[int]]) -> None:
    counts = [i % 4 + 1 for i in range(len(rows))]
    kept = largest_in_rows(np.array(rows, "float64"), np.array(counts))
    for row, count, mask in zip(rows, counts, kept, strict=True):
        assert np.flatnonzero(mask).tolist() == _best(row, count)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=10))
def test_filling_comes_as_near_to_the_total_as_its_order_allows(pairs: list) -> None:
    scores, sizes = (np.array(x, "float64") for x in zip(*pairs, strict=True))
    sizes = sizes.astype(int)
    if not sizes.any():
        return
    total = 0.4 * sizes.sum()
    kept = largest_filling(scores, sizes, total)
    order = sorted((i for i in range(len(sizes)) if sizes[i]), key=lambda i: (-scores[i], i))
    sums = [sum(sizes[i] for i in order[:n]) for n in range(1, len(order) + 1)]
    nearest = min(abs(s - total) for s in sums)
    assert abs(sizes[kept].sum() - total) == nearest
    assert sorted(np.flatnonzero(kept)) == sorted(order[: kept.sum()])
