"""Tiles of sparse kernels: cycles worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules.kernels import AVX512
from tvm_ext.schedules.sparse_tile import SparseTile, fits, legal_tiles, pass_cycles
from tvm_ext.target import resolve

AVX2 = resolve("llvm -mcpu=core-avx2")


@pytest.mark.parametrize(
    ("tile", "avx2", "avx512"),
    [
        (SparseTile(4, 3), True, True),  # 12 sums, 3 vectors, a weight: all 16 registers
        (SparseTile(4, 4), False, True),
        (SparseTile(8, 3), False, True),
        (SparseTile(8, 4), False, False),
        (SparseTile(1, 13), True, True),
    ],
)
def test_registers(tile: SparseTile, avx2: bool, avx512: bool) -> None:
    assert (fits(tile, AVX2), fits(tile, AVX512)) == (avx2, avx512)


def test_cycles() -> None:
    # 24 multiply-adds on two pipes; 12 loads take 7.5 cycles, of which 30 % show, 39 instructions
    # 12.2.
    assert SparseTile(8, 3).cycles(1.0, AVX512) == pytest.approx(39 / 3.2 + 0.3 * 7.5)
    # One channel: each multiply-add loads its own vector, and nearly every one spans two lines.
    loads = (16 * (1 + 15 / 16) + 2) / 1.6
    assert SparseTile(1, 16).cycles(1 + 15 / 16, AVX512) == pytest.approx(loads + 0.3 * 8)
    # Nothing hides the latency of a single multiply-add.
    assert SparseTile(1, 1).cycles(1.0, AVX512) == pytest.approx(4 + 0.3 * 0.5)


def test_a_row_of_vectors_is_cut_evenly() -> None:
    tile = SparseTile(4, 3)
    expected = 2 * SparseTile(4, 3).cycles(1.0, AVX2) + SparseTile(4, 2).cycles(1.0, AVX2)
    assert pass_cycles(tile, 8, 1.0, AVX2) == pytest.approx(expected)


def test_tiles_are_not_larger_than_the_output() -> None:
    tiles = legal_tiles((2, 4, 8), 2 * AVX512.lanes, 5, AVX512)
    assert {t.channels for t in tiles} == {2, 4}
    assert {t.vectors for t in tiles} == {1, 2}
    # The narrowest panel is there whatever the output: it is padded.
    assert {t.channels for t in legal_tiles((2, 4), 16, 1, AVX512)} == {2}


def test_two_passes_hide_more() -> None:
    """A vector takes two of the core's cycles, in which it loads and issues twice as much."""
    znver4 = resolve("llvm -mcpu=znver4")
    assert (znver4.lanes, znver4.unit_lanes, AVX512.unit_lanes) == (16, 8, 16)
    loads = (16 * (1 + 7 / 16) + 2) / 2.0
    assert SparseTile(1, 16).cycles(1 + 7 / 16, znver4) == pytest.approx(loads + 0.3 * 8)
    assert SparseTile(8, 3).cycles(1.0, znver4) == pytest.approx(12 + 0.3 * 6)
    nominal = [replace(target, is_host=False).fma_peak for target in (znver4, AVX512)]
    assert 2 * nominal[0] == nominal[1]
