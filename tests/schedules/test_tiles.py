"""The model of register tiles, and the cuts and starts that every kernel builds on."""

from __future__ import annotations

import pytest

from tests.schedules.kernels import AVX512, HOST, NEON
from tvm_ext.schedules.emit import split_extent
from tvm_ext.schedules.gemm import start
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
    assert cycles_a_step(Tile(1, 1), NEON) == 4  # one accumulator waits for itself
    assert cycles_a_step(Tile(6, 2), NEON) == 6  # 12 multiply-adds on two pipes
    assert cycles_a_step(Tile(14, 1), NEON) == 7.5  # 14 broadcasts and a vector


def test_efficiency_counts_edge_tiles() -> None:
    whole = efficiency(Tile(6, 2), 12, 4, NEON)
    assert whole == 1.0
    assert efficiency(Tile(6, 2), 7, 2, NEON) < whole


@pytest.mark.parametrize("width", [1, 3, 6, 7])
@pytest.mark.parametrize("extent", [1, 5, 6, 7, 13, 49])
def test_split_covers_the_extent_in_even_tiles(extent: int, width: int) -> None:
    parts = split_extent(extent, width)
    assert sum(count * size for count, size in parts) == extent
    sizes = [size for _, size in parts]
    assert max(sizes) <= width
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("extent", [4, 5, 8, 11])
def test_starts_cover_the_extent_without_leaving_it(extent: int) -> None:
    starts = [start(i, 4, extent) for i in range(-(-extent // 4))]
    assert set().union(*(range(s, s + 4) for s in starts)) == set(range(extent))
