"""How products are cut: parts that fit the cache, tasks for the cores, the best tile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules.kernels import AVX512, HOST, NEON
from tvm_ext.schedules import gemm_cuts
from tvm_ext.schedules.gemm import Blocking
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


def test_rows_are_cut_to_stay_in_cache_and_for_every_core() -> None:
    cpu = replace(NEON, l2=64 << 10, cores=4)
    assert gemm_cuts.least_chunks(100, 256, cpu) == 4  # 32 rows of 1 KB are half of the cache
    assert gemm_cuts.least_chunks(100, 1 << 20, cpu) == 25  # never fewer than four rows
    assert gemm_cuts.even_chunks(5, 100, cpu) == 8
    assert gemm_cuts.even_chunks(1, 3, cpu) == 3


def test_cuts_of_packed_products() -> None:
    space = gemm_cuts.packed_space(5, 3 * NEON.lanes + 1, 12, NEON)
    assert space["chunks"] == (1, 2, 3, 4, 5)
    assert space["pieces"] == (1, 2, 3, 4)
    assert space["k_parts"] == (1, 2, 3, 4, 6, 12)
    assert max(space["tile"]) == 5 and max(space["blocks"]) == 3


def test_packed_seconds_are_compute_and_half_of_the_traffic() -> None:
    two = replace(NEON, cores=2)

    def seconds(nbytes: int = 0, **cuts: int) -> float:
        b = Blocking(12, 4 * two.lanes, 8, two.lanes, 2, 6, **cuts)
        return gemm_cuts.packed_seconds(b, nbytes, two)

    compute = 2 * 12 * 4 * two.lanes * 8 / two.fma_peak
    assert seconds() == pytest.approx(compute)
    assert seconds(pieces=2) == pytest.approx(compute / 2)
    traffic = 0.5 / two.memory_bandwidth
    assert seconds(nbytes=1000) == pytest.approx(compute + 1000 * traffic)
    # A second chunk reads the weights again, at a quarter of their bytes.
    again = 0.25 * 4 * 8 * 4 * two.lanes * traffic
    assert seconds(chunks=2) == pytest.approx(compute / 2 + again)
    # Twelve rows in eight chunks of two are six tasks.
    least = gemm_cuts.panel_efficiency(Tile(6, 2), 2, 4 * two.lanes, two)
    assert seconds(chunks=8) == pytest.approx(compute / least / 2 + 5 * again)
