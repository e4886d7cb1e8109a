"""How products are cut: parts that fit the cache, tasks for the cores, the best tile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules.kernels import AVX512, HOST, NEON
from tvm_ext.schedules import gemm_cuts
from tvm_ext.schedules.tiles import Tile


def test_parts_divide_the_reduction_and_fit_the_cache() -> None:
    assert gemm_cuts.legal_parts(12) == (1, 2, 3, 4, 6, 12)
    assert gemm_cuts.legal_parts(67) == (1,)  # a prime beyond the most parts
    small = replace(HOST, l2=64 << 10)
    tile = Tile(6, 2)
    assert gemm_cuts.best_parts(64, tile, small) == 1
    parts = gemm_cuts.best_parts(1024, tile, small)
    bytes_of = 4 * 1024 * 2 * small.lanes
    assert bytes_of / parts <= small.l2 / 8 < bytes_of / (parts / 2)
    assert gemm_cuts.best_parts(1 << 20, tile, small) == 64  # nothing fits: as many as there are


def test_small_products_stay_on_one_core() -> None:
    four = replace(NEON, cores=4)
    assert gemm_cuts.share_out(64, 64, 16, 1, Tile(6, 2), four) == (1, 1)
    chunks, pieces = gemm_cuts.share_out(64, 4096, 64, 1, Tile(6, 2), four)
    assert (chunks, pieces) == (1, 4)  # wide: columns are shared, each core reads its own
    chunks, pieces = gemm_cuts.share_out(4096, 16, 64, 1, Tile(6, 2), four)
    assert chunks % 4 == 0 and pieces == 1  # tall: rows are
    assert gemm_cuts.share_out(64, 64, 64, 1, Tile(6, 2), four, others=8) == (1, 1)


def test_panel_efficiency_counts_columns_computed_twice() -> None:
    whole = gemm_cuts.panel_efficiency(Tile(6, 2), 12, 4 * NEON.lanes, NEON)
    assert whole == 1.0
    # Five vectors in panels of two: six are computed.
    overlapped = gemm_cuts.panel_efficiency(Tile(6, 2), 12, 5 * NEON.lanes, NEON)
    assert overlapped == pytest.approx(5 / 6)
    assert gemm_cuts.best_panel_tile(120, 5 * NEON.lanes, NEON).columns in (1, 5)


def test_rows_a_page_apart_get_a_tile_whose_lines_the_l1_cache_holds() -> None:
    cpu = replace(AVX512, l1d=32 << 10)  # eight ways
    apart = gemm_cuts.best_panel_tile(120, 20 * 16, cpu, stride=1024)
    assert apart.rows < 8 < gemm_cuts.best_panel_tile(120, 20 * 16, cpu).rows
    # Half a page apart they share two sets, and an odd number of lines apart all of them.
    for stride in (512, 16 * 63):
        assert gemm_cuts.best_panel_tile(120, 20 * 16, cpu, stride).rows > 8
    assert gemm_cuts.panel_efficiency(Tile(14, 2), 120, 320, cpu, 1024) < 0.75


def test_few_rows_never_conflict() -> None:
    for stride in (1, 1024):
        assert gemm_cuts.panel_efficiency(Tile(14, 2), 4, 320, AVX512, stride) == pytest.approx(
            gemm_cuts.panel_efficiency(Tile(14, 2), 4, 320, AVX512)
        )
