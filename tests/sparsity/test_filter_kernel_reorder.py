"""The order of filters: by length, and of one length by likeness."""

import numpy as np

from tvm_ext.sparsity.filter_kernel_reorder import filter_order


def test_by_length():
    counts = np.array([[2, 1], [0, 0], [1, 0], [3, 3]])
    assert filter_order(counts).tolist() == [1, 2, 0, 3]


def test_filters_of_one_length_and_mix_are_neighbours():
    mixes = np.array([[4, 0, 0], [0, 4, 0], [0, 0, 4]])
    order = filter_order(mixes[[0, 1, 2, 0, 1, 2]])
    kinds = [int(i) % 3 for i in order]
    assert sorted(order.tolist()) == list(range(6))
    assert [kinds[0], kinds[2], kinds[4]] == [kinds[1], kinds[3], kinds[5]]


def test_next_is_the_nearest():
    counts = np.array([[6, 0], [0, 6], [4, 2], [2, 4]])
    assert filter_order(counts).tolist() == [0, 2, 3, 1]


def test_no_filters():
    assert filter_order(np.zeros((0, 4), int)).tolist() == []


def test_neighbours_of_random_filters_differ_less_than_as_they_were():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(24, np.full(8, 1 / 8), size=64)
    ordered = counts[filter_order(counts)]

    def steps(rows):
        return np.abs(np.diff(rows, axis=0)).sum()

    assert steps(ordered) < 0.7 * steps(counts)
