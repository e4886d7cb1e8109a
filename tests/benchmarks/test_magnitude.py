"""Pruning by magnitude: by hand, exact counts, and that what goes is what is smallest."""

import numpy as np
import pytest

from benchmarks.magnitude import prune

RNG = np.random.default_rng(0)


def weights(*shape):
    return RNG.standard_normal(shape).astype("float32")


def test_unstructured_by_hand():
    w = np.array([[1, -4], [3, 2]], "float32")
    np.testing.assert_array_equal(prune(w, "unstructured", 0.5), [[0, -4], [3, 0]])


@pytest.mark.parametrize("density", [0.01, 0.161, 0.5, 1.0])
def test_unstructured_keeps_the_largest_and_exactly_as_many(density):
    w = weights(24, 10, 3, 3)
    pruned = prune(w, "unstructured", density)
    kept = pruned != 0
    assert kept.sum() == round(density * w.size)
    np.testing.assert_array_equal(pruned[kept], w[kept])
    if density < 1:
        assert np.abs(w[kept]).min() >= np.abs(w[~kept]).max()


@pytest.mark.parametrize("filters", [16, 32, 40])
def test_block16_keeps_the_same_columns_in_16_filters(filters):
    w = weights(filters, 5, 3, 3)
    kept = (prune(w, "block16", 0.2) != 0).reshape(filters, -1)
    for first in range(0, filters, 16):
        panel, norms = kept[first : first + 16], np.square(w).reshape(filters, -1)
        assert (panel == panel[0]).all()
        assert panel[0].sum() == round(0.2 * 45)
        energy = norms[first : first + 16].sum(0)
        assert energy[panel[0]].min() >= energy[~panel[0]].max()


def test_pattern_keeps_four_weights_with_the_centre_in_eight_patterns():
    w = weights(32, 24, 3, 3)
    kept = (prune(w, "pattern", 0.2) != 0).reshape(-1, 9)
    counts = kept.sum(1)
    assert set(counts) == {0, 4}
    assert (counts == 4).sum() == round(0.2 * 9 / 4 * 32 * 24)
    used = kept[counts == 4]
    assert used[:, 4].all()
    assert len(np.unique(used, axis=0)) <= 8


def test_pattern_by_hand():
    kernel = np.array([[9, 1, 1], [1, 0.5, 7], [1, 8, 1]], "float32")
    wanted = np.array([[9, 0, 0], [0, 0.5, 7], [0, 8, 0]])
    np.testing.assert_array_equal(prune(kernel[None, None], "pattern", 4 / 9)[0, 0], wanted)


@pytest.mark.parametrize("scheme", ["unstructured", "block16", "pattern"])
def test_something_always_stays(scheme):
    pruned = prune(weights(16, 2, 3, 3), scheme, 1e-6)
    assert np.count_nonzero(pruned) == {"unstructured": 1, "block16": 16, "pattern": 4}[scheme]


@pytest.mark.parametrize(
    ("scheme", "density", "shape", "message"),
    [
        ("blocks", 0.5, (4, 4), "scheme 'blocks'; there are: unstructured, block16, pattern"),
        ("block16", 0.0, (4, 4), "density 0.0; it must be above 0 and at most 1"),
        ("block16", 1.5, (4, 4), "density 1.5"),
        ("pattern", 0.2, (4, 4, 1, 1), "patterns of 4 weights are for 3x3 kernels"),
        ("pattern", 0.5, (4, 4, 3, 3), "densities up to 0.444"),
    ],
)
def test_refusals(scheme, density, shape, message):
    with pytest.raises(ValueError, match=message):
        prune(np.ones(shape, "float32"), scheme, density)
