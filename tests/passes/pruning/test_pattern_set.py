"""Pattern sets, against counting in Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tvm_ext.errors import OptionError
from tvm_ext.passes.pruning.pattern_set import as_patterns, common_patterns

KERNELS = ((3, 3), (5, 5))


def _natural(kernel: np.ndarray, entries: int) -> tuple[int, ...]:
    """Taps of the centre and of the largest others."""
    centre = kernel.size // 2
    others = sorted((i for i in range(kernel.size) if i != centre), key=lambda i: -kernel.flat[i])
    return tuple(sorted([centre, *others[: entries - 1]]))


@pytest.mark.parametrize(("size", "entries"), [(3, 4), (3, 1), (3, 9), (5, 3), (7, 2)])
def test_the_most_frequent_natural_patterns_are_found(size: int, entries: int) -> None:
    kernels = np.random.default_rng(0).random((400, size, size))
    counts = Counter(_natural(k, entries) for k in kernels)
    found = common_patterns([kernels[:150], kernels[150:]], (size, size), entries, 6)
    taps = [tuple(np.flatnonzero(p).tolist()) for p in found]
    assert [counts[t] for t in taps] == [n for _, n in counts.most_common(6)]
    assert all(size * size // 2 in t and len(t) == entries for t in taps)


def test_of_equally_frequent_patterns_the_one_that_keeps_more_is_taken() -> None:
    kernels = np.zeros((2, 3, 3))
    kernels[0, 0, 0], kernels[1, 2, 2] = 1.0, 5.0
    (found,) = common_patterns([kernels], (3, 3), 2, 1)
    assert np.argwhere(found).tolist() == [[1, 1], [2, 2]]


def test_fewer_are_found_where_fewer_occur() -> None:
    assert len(common_patterns([np.ones((5, 9))], (3, 3), 4, 8)) == 1


def test_given_patterns_become_tuples_of_booleans() -> None:
    given = [np.eye(3), [[0, 1, 0], [0, 1, 0], [0, 1, 0]]]
    first, second = as_patterns(given, 3, KERNELS)
    assert first == ((True, False, False), (False, True, False), (False, False, True))
    assert hash(second) == hash(((False, True, False),) * 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "pattern_set is empty"),
        ([np.eye(3), np.ones((3, 3))], r"pattern_set\[1\] has 9 entries; entries=3"),
        ([np.eye(4)], r"pattern_set\[0\] has shape \(4, 4\); allowed: 3x3, 5x5"),
        ([2 * np.eye(3)], r"pattern_set\[0\]=.* has to be of ones and zeros"),
        ([[["a"] * 3] * 3], r"pattern_set\[0\]=.* has to be of ones and zeros"),
        ([[[1, 0], [1]]], r"pattern_set\[0\]=.* is not a rectangular array"),
    ],
)
def test_wrong_patterns_are_refused(given: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        as_patterns(given, 3, KERNELS)
