"""Pattern pruning, against a search kernel by kernel."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from relax_models import array

from tvm_ext.errors import OptionError
from tvm_ext.passes.pruning import PatternPrune

CROSS = [[0, 1, 0], [1, 1, 0], [0, 1, 0]]
CORNER = [[1, 1, 0], [1, 1, 0], [0, 0, 0]]


def test_each_kernel_takes_the_pattern_that_keeps_most() -> None:
    weights = array(0, 6, 5, 3, 3)
    kept = PatternPrune(pattern_set=[CROSS, CORNER]).mask(weights)
    for kernel, mask in zip(weights.reshape(-1, 3, 3), kept.reshape(-1, 3, 3), strict=True):
        kernel = kernel.astype("float64")
        sums = [(kernel**2 * p).sum() for p in (CROSS, CORNER)]
        np.testing.assert_array_equal(mask, [CROSS, CORNER][int(np.argmax(sums))])


def test_with_all_patterns_the_mask_is_the_nearest_that_there_is() -> None:
    """56 patterns of 3x3 kernels have the centre and three of the other taps."""
    weights = array(1, 8, 200, 3, 3)
    kept = PatternPrune(patterns=1000).mask(weights)
    others = [i for i in range(9) if i != 4]
    table = np.zeros((56, 9))
    for row, taps in zip(table, combinations(others, 3), strict=True):
        row[[4, *taps]] = 1
    squares = weights.reshape(-1, 9).astype("float64") ** 2
    best = (squares @ table.T).max(axis=1)
    np.testing.assert_allclose((squares * kept.reshape(-1, 9)).sum(axis=1), best, rtol=1e-12)


@pytest.mark.parametrize("size", [3, 5, 7])
@pytest.mark.parametrize("filters", [15, 16, 17, 3])
def test_neighbours_share_patterns_and_kernels(size: int, filters: int) -> None:
    scheme = PatternPrune(entries=4, patterns=3, connectivity=0.5, lanes=16)
    kept = scheme.mask(array(0, filters, 6, size, size))
    for first in range(0, filters, 16):
        group = kept[first : first + 16]
        assert (group == group[:1]).all()
    counts = kept.reshape(filters, 6, -1).sum(axis=2)
    assert set(np.unique(counts)) <= {0, 4}
    assert len(np.unique(kept.reshape(-1, size * size), axis=0)) <= 3 + 1


def test_groups_choose_by_all_their_filters() -> None:
    """Alone, the first filter would take the corner; together they keep more with the cross."""
    weights = np.zeros((2, 1, 3, 3), "float32")
    weights[0, 0, 0, 0] = 2.0
    weights[1, 0, 2, 1] = 3.0
    scheme = PatternPrune(pattern_set=[CROSS, CORNER])
    np.testing.assert_array_equal(scheme.mask(weights)[:, 0], [CORNER, CROSS])
    shared = PatternPrune(pattern_set=[CROSS, CORNER], lanes=2)
    np.testing.assert_array_equal(shared.mask(weights)[:, 0], [CROSS, CROSS])


@pytest.mark.parametrize("connectivity", [0.1, 0.5, 0.99])
def test_the_kernels_that_keep_most_remain(connectivity: float) -> None:
    weights = array(2, 9, 11, 3, 3)
    whole = PatternPrune(pattern_set=[CROSS, CORNER]).mask(weights)
    kept = PatternPrune(pattern_set=[CROSS, CORNER], connectivity=connectivity).mask(weights)
    sums = (weights.astype("float64") ** 2 * whole).sum(axis=(2, 3)).reshape(-1)
    remaining = np.argsort(-sums)[: round(connectivity * 99)]
    np.testing.assert_array_equal(
        np.flatnonzero(kept.any(axis=(2, 3)).reshape(-1)), np.sort(remaining)
    )
    np.testing.assert_array_equal(kept, whole & kept.any(axis=(2, 3), keepdims=True))


def test_depthwise_filters_keep_their_kernel() -> None:
    kept = PatternPrune(connectivity=0.1).mask(array(0, 10, 1, 3, 3))
    assert (kept.reshape(10, -1).sum(axis=1) == 4).all()


def test_one_set_is_found_for_all_layers_of_a_kernel_size() -> None:
    weights = {
        "a": array(0, 4, 4, 3, 3), "b": array(1, 40, 4, 3, 3), "c": array(2, 4, 4, 5, 5),
        "d": array(3, 4, 4, 1, 1),
    }  # fmt: skip
    scheme = PatternPrune(patterns=2)
    fitted = scheme.fitted(weights)
    assert [np.shape(p) for p in fitted.pattern_set] == [(3, 3)] * 2 + [(5, 5)] * 2
    assert fitted.fitted({"a": weights["b"]}) is fitted
    kept = scheme.masks({name: w for name, w in weights.items() if name != "d"})
    both = np.concatenate([kept[name].reshape(-1, 9) for name in "ab"])
    assert len(np.unique(both, axis=0)) == 2
    np.testing.assert_array_equal(fitted.mask(weights["a"]), kept["a"])


@pytest.mark.parametrize(("density", "connectivity"), [(0.2, 0.45), (4 / 9, 1.0), (0.4444, 0.9999)])
def test_a_density_becomes_a_connectivity(density: float, connectivity: float) -> None:
    scheme = PatternPrune().at_density(density, (8, 8, 3, 3))
    assert scheme.connectivity == pytest.approx(connectivity)


@pytest.mark.parametrize(
    ("density", "shape", "message"),
    [
        (0.5, (8, 8, 3, 3), r"density=0.5 .* entries=4 keep 0.000 to 0.444"),
        (0.2, (8, 1, 3, 3), r"density=0.2 .* entries=4 keep 0.444 to 0.444"),
        (0.0, (8, 8, 3, 3), r"density=0.0 has to be"),
        (0.2, (8, 8, 1, 1), "a 1x1 kernel; patterns are for 3x3, 5x5 and 7x7"),
    ],
)
def test_densities_that_patterns_cannot_have(
    density: float, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        PatternPrune().at_density(density, shape)


@pytest.mark.parametrize(
    ("shape", "options", "reason"),
    [
        ((4, 4), {}, "a 1x1 kernel; patterns are for 3x3, 5x5 and 7x7"),
        ((4, 4, 3), {}, "a 3 kernel; patterns are for 3x3, 5x5 and 7x7"),
        ((4, 4, 3, 3, 3), {}, "a 3x3x3 kernel"),
        ((4, 4, 3, 3), {"entries": 10}, "entries=10; a 3x3 kernel has 9"),
        ((4, 4, 5, 5), {"pattern_set": [CROSS]}, "pattern_set has none for a 5x5 kernel"),
    ],
)
def test_layers_it_does_not_take(shape: Any, options: dict[str, Any], reason: str) -> None:
    scheme = PatternPrune(**options)
    assert scheme.refuses(shape).startswith(reason)
    with pytest.raises(OptionError, match=f"PatternPrune on weights of shape .*: {reason}"):
        scheme.mask(np.zeros(shape, "float32"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entries": 0}, "entries=0 has to be a whole number, 1 to 49"),
        ({"patterns": 0}, "patterns=0 has to be"),
        ({"lanes": 2.5}, "lanes=2.5 has to be"),
        ({"connectivity": 0.0}, "connectivity=0.0 has to be"),
        ({"entries": 3, "pattern_set": [CROSS]}, r"pattern_set\[0\] has 4 entries; entries=3"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        PatternPrune(**options)


@pytest.mark.parametrize("connectivity", [1.0, 0.4])
def test_pruned_weights_stay_as_they_are(connectivity: float) -> None:
    """Removed kernels have no say in which patterns are the frequent ones."""
    scheme = PatternPrune(patterns=4, connectivity=connectivity)
    weights = array(2, 24, 16, 3, 3)
    mask = scheme.mask(weights)
    np.testing.assert_array_equal(scheme.mask(weights * mask), mask)
