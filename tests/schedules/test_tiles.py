"""The model of register tiles."""

from __future__ import annotations

import pytest

from tests.schedules.kernels import AVX512, HOST, NEON
from tvm_ext.schedules.tiles import Tile, best_tile, cycles_a_step, efficiency, legal_tiles
from tvm_ext.schedules.tiles import registers_needed as needed


@pytest.mark.parametrize("target", [HOST, AVX512, NEON])
def test_tiles_fit_the_registers_and_the_output(target: object) -> None:
    for rows, columns in [(1, 1), (7, 2), (100, 9)]:
        for tile in legal_tiles(rows, columns, target):
            assert needed(tile, target) <= target.registers
            assert tile.rows <= rows
            assert tile.columns <= columns


@pytest.mark.parametrize("target", [AVX512, NEON])
def test_a_large_output_runs_near_the_peak(target: object) -> None:
    tile = best_tile(120, 12, target)
    assert efficiency(tile, 120, 12, target) > 0.95
    assert needed(tile, target) <= 32


def test_cycles_are_bound_by_latency_fmas_or_loads() -> None:
    assert cycles_a_step(Tile(1, 1)) == 4  # one accumulator waits for itself
    assert cycles_a_step(Tile(6, 2)) == 6  # 12 multiply-adds on two pipes
    assert cycles_a_step(Tile(14, 1)) == 7.5  # 14 broadcasts and a vector


def test_avx512_broadcasts_in_the_multiply_add_only_for_one_column() -> None:
    assert needed(Tile(30, 1), AVX512) == 31
    assert needed(Tile(14, 2), AVX512) == 28 + 2 + 1
    assert (best_tile(56 * 56, 4, AVX512)) == Tile(14, 2)


def test_efficiency_counts_edge_tiles() -> None:
    whole = efficiency(Tile(6, 2), 12, 4, NEON)
    assert whole == 1.0
    assert efficiency(Tile(6, 2), 7, 2, NEON) < whole
