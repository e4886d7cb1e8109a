"""The default cost of block sizes: counts against real masks, times by what has to hold."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_ext.passes.pruning import BlockPrune
from tvm_ext.passes.pruning.block_cost import block_seconds, block_sparsity
from tvm_ext.sparsity import Sparsity


@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("density", [0.05, 0.25, 0.7])
def test_expected_counts_are_those_of_random_blocks(rows: int, density: float) -> None:
    rng = np.random.default_rng(0)
    places = rng.random((128 // rows, 640)) < density
    real = Sparsity.of(np.repeat(places, rows, axis=0).astype("float32"))
    expected = block_sparsity((128, 640), rows, density)
    assert expected.weights == real.weights
    assert expected.nonzeros == pytest.approx(real.nonzeros, rel=0.06)
    for lanes, kept in expected.vectors:
        assert kept == pytest.approx(real.kept(lanes), rel=0.06)


@pytest.mark.parametrize("shape", [(64, 64, 3, 3), (64, 64), (64, 48, 3), (16, 16, 3, 3, 3)])
def test_fewer_weights_and_coarser_blocks_are_not_slower(shape: tuple[int, ...]) -> None:
    width = int(np.prod(shape[1:]))
    times = [block_seconds(shape, (8, width), d) for d in (0.1, 0.3, 0.6)]
    assert times == sorted(times)
    assert 0 < times[0] < 1
    by_rows = [block_seconds(shape, (rows, width), 0.3) for rows in (1, 2, 8)]
    assert by_rows == sorted(by_rows, reverse=True)


def test_automatic_blocks_use_it() -> None:
    shape = (64, 1, 3, 3)
    rows, width = BlockPrune(density=0.3).block_of(shape)
    assert width == 9
    least = min(block_seconds(shape, (r, 9), 0.3) for r in (1, 2, 4, 8, 16))
    assert block_seconds(shape, (rows, 9), 0.3) <= 1.1 * least
