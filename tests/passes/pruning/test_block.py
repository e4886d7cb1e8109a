"""Block pruning, against loops over blocks and against trying every mask."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from relax_models import array

from tvm_ext.errors import OptionError
from tvm_ext.passes.pruning import BlockPrune


def _blocks(matrix: np.ndarray, rows: int, columns: int) -> list[np.ndarray]:
    return [
        matrix[top : top + rows, left : left + columns]
        for top in range(0, matrix.shape[0], rows)
        for left in range(0, matrix.shape[1], columns)
    ]


def test_a_worked_example() -> None:
    weights = np.array([[1, 5, 0, 3], [2, 0, 4, 0], [9, 0, 1, 1], [0, 0, 1, 2]], "float32")
    # Sums of squares of the columns: 5, 25, 16, 9 in the upper blocks, 81, 0, 2, 5 in the lower.
    kept = BlockPrune(density=0.5, block=(2, 2)).mask(weights)
    expected = np.repeat([[0, 1, 1, 1], [1, 0, 0, 0]], 2, axis=0).astype(bool)
    np.testing.assert_array_equal(kept, expected)
    each = BlockPrune(density=0.5, block=(2, 2), scope="block").mask(weights)
    np.testing.assert_array_equal(each, np.repeat([[0, 1, 1, 0], [1, 0, 0, 1]], 2, axis=0))


@pytest.mark.parametrize(
    "shape", [(16, 8), (17, 9, 3), (15, 5, 3, 3), (6, 1, 3, 3), (9, 2, 3, 3, 3)]
)
@pytest.mark.parametrize("rows", [1, 4, 8, 16])
def test_columns_of_every_type_of_layer_are_ranked_by_mean_square(
    shape: tuple[int, ...], rows: int
) -> None:
    weights = array(0, *shape)
    kept = BlockPrune(density=0.3, block=(rows, 1000)).mask(weights)
    matrix = weights.reshape(shape[0], -1).astype("float64")
    means = np.array([(m**2).mean(axis=0) for m in _blocks(matrix, rows, 1000)])
    masks = _blocks(kept.reshape(shape[0], -1), rows, 1000)
    assert all((m == m[:1]).all() for m in masks)
    chosen = np.array([m[0] for m in masks])
    assert means[chosen].min() >= means[~chosen].max()
    smallest = min(rows, shape[0]) / 2
    assert abs(kept.sum() - 0.3 * weights.size) <= smallest


@pytest.mark.parametrize(("rows", "columns"), [(4, 6), (5, 7), (3, 100)])
def test_every_block_keeps_its_share_if_asked(rows: int, columns: int) -> None:
    weights = array(1, 14, 20)
    kept = BlockPrune(density=0.4, block=(rows, columns), scope="block").mask(weights)
    pairs = zip(_blocks(weights, rows, columns), _blocks(kept, rows, columns), strict=True)
    for block, mask in pairs:
        sums = (block.astype("float64") ** 2).sum(axis=0)
        count = max(1, int(0.4 * len(sums) + 0.5))
        np.testing.assert_array_equal(np.flatnonzero(mask[0]), np.sort(np.argsort(-sums)[:count]))
        assert (mask == mask[:1]).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3]))
def test_no_other_choice_of_columns_keeps_more(seed: int, rows: int) -> None:
    weights = np.random.default_rng(seed).normal(size=(2 * rows, 4))
    energy = np.array([(b**2).sum(axis=0) for b in _blocks(weights, rows, 4)]).reshape(-1)
    best = max(energy[list(c)].sum() for c in combinations(range(8), 3))
    kept = BlockPrune(density=3 / 8, block=(rows, 2)).mask(weights)
    assert (weights**2 * kept).sum() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("scope", ["layer", "block"])
@pytest.mark.parametrize("shape", [(16, 24), (18, 4, 3, 3)])
def test_rows_go_first_and_columns_by_what_is_left(scope: str, shape: tuple[int, ...]) -> None:
    weights = array(2, *shape)
    scheme = BlockPrune(density=0.25, block=(8, 6), row_density=0.5, scope=scope)
    kept = scheme.mask(weights)
    matrix = weights.reshape(shape[0], -1).astype("float64")
    for block, mask in zip(
        _blocks(matrix, 8, 6), _blocks(kept.reshape(shape[0], -1), 8, 6), strict=True
    ):
        rows, columns = mask.any(axis=1), mask.any(axis=0)
        np.testing.assert_array_equal(mask, np.outer(rows, columns))
        if scope == "block":
            half = len(block) // 2
            strongest = np.argsort(-(block**2).sum(axis=1))[:half]
            np.testing.assert_array_equal(np.flatnonzero(rows), np.sort(strongest))
            left = (block[rows] ** 2).sum(axis=0)
            np.testing.assert_array_equal(np.flatnonzero(columns), np.sort(np.argsort(-left)[:3]))
    assert kept.mean() == pytest.approx(0.25, abs=0.01)


def test_automatic_blocks_are_the_finest_that_are_about_as_fast() -> None:
    seconds = {1: 2.0, 2: 1.15, 4: 1.05, 8: 1.0, 16: 1.01}
    asked = []

    def cost(shape: tuple[int, ...], block: tuple[int, int], density: float) -> float:
        asked.append((shape, block, density))
        return seconds[block[0]]

    scheme = BlockPrune(density=0.25, cost=cost)
    assert scheme.block_of((32, 8, 3, 3)) == (4, 72)
    assert asked == [((32, 8, 3, 3), (rows, 72), 0.25) for rows in (1, 2, 4, 8, 16)]
    assert scheme.block_of((3, 8)) == (2, 8)
    weights = array(0, 32, 8, 3, 3)
    fixed = BlockPrune(density=0.25, block=(4, 72))
    np.testing.assert_array_equal(scheme.mask(weights), fixed.mask(weights))


def test_given_blocks_are_not_questioned() -> None:
    assert BlockPrune(density=0.25, block=[4, 8]).block_of((3, 3)) == (4, 8)


def test_density_is_replaced_within_that_of_the_rows() -> None:
    scheme = BlockPrune(density=0.25, block=(4, 8), row_density=0.5)
    assert scheme.densities((8, 8)) == (0.0, 0.5)
    assert scheme.at_density(0.5, (8, 8)).density == 0.5
    with pytest.raises(OptionError, match=r"density=0.6 is more than row_density=0.5 leaves"):
        scheme.at_density(0.6, (8, 8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": 0.0}, r"density=0.0 has to be a number in \(0, 1\]"),
        ({"row_density": 2}, r"row_density=2 has to be"),
        ({"block": 4}, r"block=4 has to be \(rows, columns\) or 'auto'"),
        ({"block": "fast"}, r"block='fast' has to be \(rows, columns\) or 'auto'"),
        ({"block": (4, 4, 4)}, r"block=\(4, 4, 4\) has to be"),
        ({"block": (0, 4)}, "block rows=0 has to be a whole number"),
        ({"block": (4, 1.5)}, "block columns=1.5 has to be a whole number"),
        ({"scope": "global"}, "scope='global' is not one of layer, block"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        BlockPrune(**{"density": 0.25, "block": (4, 4), **options})
