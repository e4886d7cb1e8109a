"""The cost model of products on AMX."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules.amx_kernels import SAPPHIRE
from tvm_ext.schedules.amx_costs import Passes, best_cut, panel_cycles
from tvm_ext.schedules.amx_product import TileCut

TARGET = replace(SAPPHIRE, is_host=False, cores=2)
PASSES = Passes(
    TileCut(16, 2, 2, 3), bands=4, positions=96, staged=96, groups=8, taps=9, panels=8, pieces=1,
    nbytes=1 << 18,
)  # fmt: skip


@pytest.mark.parametrize(
    ("positions", "blocks", "cut"),
    [(196, 64, (14, 2, 2)), (128, 24, (16, 2, 2)), (1, 9, (1, 1, 3)), (16, 1, (16, 1, 1))],
)
def test_best_cut(positions: int, blocks: int, cut: tuple[int, int, int]) -> None:
    found = best_cut(positions, blocks, 3)
    assert (found.rows, found.down, found.across) == cut


def test_a_step_takes_a_cycle_for_each_row_and_product() -> None:
    cycles = panel_cycles(TileCut(16, 2, 2, 3), 64)
    products = 2 * 3 * 4 * 16
    assert products < cycles < 1.3 * products


def test_cost_grows_with_the_work() -> None:
    base = PASSES.seconds(TARGET)
    for change in ({"taps": 18}, {"bands": 8}, {"panels": 16}, {"cut": TileCut(16, 2, 2, 6)}):
        assert 1.5 * base < replace(PASSES, **change).seconds(TARGET) < 2.6 * base
    # One band is no work for the second core, unless its panels are shared out.
    alone = replace(PASSES, bands=1)
    assert replace(alone, pieces=2).seconds(TARGET) < 0.8 * alone.seconds(TARGET)
