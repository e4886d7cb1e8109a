"""What Winograd convolution makes of its tiles: rows of tasks, pools inside and across tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules import pooled_convolutions
from tests.schedules.kernels import HOST, TARGETS
from tests.schedules.oracles import conv_workload
from tests.schedules.pooled_convolutions import with_pool
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.winograd_output import RowCut, fewest_tiles

V = HOST.lanes
NAMES = {2: "winograd_2x2", 4: "winograd_4x4"}
TOLERANCE = {2: 2e-6, 4: 2e-5}
LAYER = conv_workload(8, (30, 30), 8, 3, 1, 1)


def test_tasks_share_rows_of_tiles() -> None:
    cut = RowCut(4, LAYER, 3)
    assert (cut.height, cut.share, cut.all_tiles, cut.start(3, 3)) == (8, 3, 8, 12)


def test_windows_inside_tiles_repeat_no_row() -> None:
    cut = RowCut(4, with_pool(LAYER, "max", 2, 2), 2)
    # Fifteen rows of the pool, four for two rows of tiles; the last three take two, too.
    assert (cut.height, cut.share, cut.tiles_of(3), cut.all_tiles) == (15, 4, 2, 8)
    assert cut.start(4, 4) == 8


def test_windows_across_tiles_repeat_rows() -> None:
    w = with_pool(LAYER, "max", 3, 2, 1)
    cut = RowCut(4, w, 2)
    # Eight rows make three of the pool, so that fifteen take five tasks.
    assert (cut.height, cut.share, cut.all_tiles) == (15, 3, 10)
    # The first task needs no row of padding.
    assert cut.start(0, 3) == 0
    assert (fewest_tiles(4, w), fewest_tiles(2, w), fewest_tiles(2, LAYER)) == (1, 2, 1)
    for m, name in NAMES.items():
        assert algorithms()[name].space(w, HOST)["rows"][0] == fewest_tiles(m, w)


@pytest.mark.parametrize("m", NAMES)
def test_pools(m: int) -> None:
    w = conv_workload(5, (11, 13), V + 1, 3, 1, 1, batch=2)
    pooled_convolutions.assert_matches_numpy(NAMES[m], w, (V, V), TOLERANCE[m])


@pytest.mark.parametrize("m", NAMES)
@pytest.mark.parametrize(
    "w",
    [
        conv_workload(8, (12, 8), 2 * V, 3, 1, 1),
        replace(conv_workload(3, (14, 10), 8, 3), pad_before=(0, 2), pad_after=(1, 0)),
    ],
    ids=["even", "uneven padding"],
)
def test_pools_behind_other_convolutions(m: int, w: ConvWorkload) -> None:
    few = pooled_convolutions.FEW
    pooled_convolutions.assert_matches_numpy(NAMES[m], w, (V, V), TOLERANCE[m], few)


@pytest.mark.parametrize("m", NAMES)
@pytest.mark.parametrize(
    "params",
    [{"rows": 2, "pieces": 3, "blocks": 1}, {"rows": 3, "pieces": 2, "blocks": 2, "tile": 4}],
    ids=["two rows", "three rows"],
)
def test_pools_in_every_cut_of_the_rows(m: int, params: dict[str, int]) -> None:
    w, few = conv_workload(5, (19, 13), 3 * V, 3, 1, 1), pooled_convolutions.FEW
    pooled_convolutions.assert_matches_numpy(NAMES[m], w, (V, V), TOLERANCE[m], few, **params)


@pytest.mark.parametrize("m", NAMES)
def test_special_values_on_any_threads(m: int) -> None:
    pooled_convolutions.assert_special_values_are_pooled(NAMES[m], (V, V))
    pooled_convolutions.assert_threads_change_no_bit(NAMES[m], (V, V), rows=2, pieces=2)
    pooled_convolutions.assert_refuses_other_pools(NAMES[m])


def test_rows_that_two_tasks_need_cost_twice() -> None:
    w, algorithm = with_pool(LAYER, "max", 3, 2, 1), algorithms()["winograd_4x4"]
    params = {**algorithm.default(w, HOST), "pieces": 1}
    one, four = (algorithm.cost(w, {**params, "rows": n}, HOST) for n in (1, 4))
    assert one > 1.3 * four


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_pool_in_vectors(target: str) -> None:
    block = TARGETS[target].lanes
    pooled_convolutions.assert_uses_vectors("winograd_2x2", target, (block, block))
