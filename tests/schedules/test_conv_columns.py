"""Convolutions in vectors of columns: geometry and tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm.script.ir_builder import tirx as T

from tests.schedules.kernels import AVX512, HOST, NEON
from tests.schedules.oracles import conv_workload
from tests.schedules.snippets import V, run_snippet
from tvm_ext.schedules import conv_columns as cc
from tvm_ext.schedules import emit


def test_small_pointwise_maps_become_one_row() -> None:
    g = cc.ColumnGeometry.of(conv_workload(8, (7, 7), 8, 1), lanes=8)
    assert (g.spatial, g.out, g.staged, g.must_stage) == ((1, 49), (1, 49), (1, 49), False)
    # Rows that hold several vectors stay as they are.
    wide = cc.ColumnGeometry.of(conv_workload(8, (7, 32), 8, 1), lanes=8)
    assert wide.out == (7, 32)


def test_strided_columns_are_staged_in_phases() -> None:
    g = cc.ColumnGeometry.of(conv_workload(8, (9, 21), 8, 3, 2, 1), lanes=8)
    assert (g.out, g.staged, g.phases, g.must_stage) == ((5, 11), (11, 23), 2, True)
    assert g.reach(2) == (2 * 1 + 3, 23)
    # One tap needs only every second column.
    assert cc.ColumnGeometry.of(conv_workload(8, (9, 21), 8, 1, 2), lanes=8).phases == 1


def test_one_dimension_is_lifted_to_two() -> None:
    g = cc.ColumnGeometry.of(conv_workload(4, (20,), 8, 3, 1, 2, dilation=2), lanes=8)
    assert (g.spatial, g.kernel, g.dilation, g.before) == ((1, 20), (1, 3), (1, 2), (0, 2))
    assert g.taps() == (cc.Taps(1), cc.Taps(3, stride=2))


@pytest.mark.parametrize("target", [HOST, AVX512, NEON], ids=["host", "avx512", "neon"])
@pytest.mark.parametrize("columns", [1, 3, 7, 14, 56])
def test_best_tiles_fit_the_registers_and_the_output(columns: int, target: Any) -> None:
    for choices, rows in (((1, 2, 3, 6), 5), ((5,), 1), ((1,), 30)):
        tile = cc.best_column_tile(choices, 6, rows, columns, target)
        assert cc.legal(tile, target)
        assert tile.channels in choices
        assert tile.high <= rows
        assert tile.width <= columns


def test_lanes_are_halved_until_a_row_holds_a_vector() -> None:
    assert [cc.vector_lanes(n, AVX512) for n in (100, 16, 15, 7, 3, 1)] == [16, 16, 8, 4, 2, 1]


def test_cycles_count_tiles_that_overlap() -> None:
    tile = cc.ColumnTile(4, 1, 2, 8)
    whole = cc.tile_cycles(tile, 8, 10, 32, HOST)
    assert cc.tile_cycles(tile, 9, 10, 32, HOST) == 1.5 * whole
    assert cc.tile_cycles(tile, 8, 10, 33, HOST) == 1.5 * whole


def test_cover_visits_every_element_inside() -> None:
    extents, sizes = (5, 7), (2, 3)
    numbers = np.arange(35, dtype="float32").reshape(extents)

    def body(source: Any, out: Any) -> None:
        def tile(y: Any, x: Any) -> None:
            with emit.nest(sizes) as (i, j):
                T.buffer_store(out, source[y + i, x + j], [y + i, x + j])

        cc.emit_cover(extents, sizes, tile)

    np.testing.assert_array_equal(run_snippet(body, numbers, shape=extents), numbers)


@pytest.mark.parametrize("unroll", [False, True])
def test_tiles_accumulate_all_channels_and_taps(unroll: bool) -> None:
    """A transposed convolution's taps: the second and fourth, read two and one columns away."""
    tile = cc.ColumnTile(3, 2, 2, V)
    taps = (cc.Taps(2), cc.Taps(2, first=1, step=2, offset=2, stride=-1))
    rng = np.random.default_rng(0)
    data = rng.standard_normal((5, 3, tile.width + 2)).astype("float32")
    weight = rng.standard_normal((5, 2, 4, 3)).astype("float32")

    def body(x: Any, w: Any, out: Any) -> None:
        cc.emit_tile(
            tile, (5,), taps,
            lambda ci, at, r: w[(*ci, *at, r)],
            lambda ci, offsets, h, column, offset: x[(*ci, h + offsets[0], column + offset)],
            lambda r, h, column, value: T.buffer_store(out, value, [r, h, column]),
            unroll,
        )  # fmt: skip

    want = np.zeros((3, 2, tile.width))
    for i, j, h in np.ndindex(2, 2, 2):
        source = data[:, h + i, 2 - j : 2 - j + tile.width].astype("float64")
        want[:, h] += weight[:, i, 1 + 2 * j].T @ source
    got = run_snippet(body, data, weight, shape=want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_tile_without_taps_is_zero() -> None:
    """An output that no tap of a transposed convolution reaches."""
    tile = cc.ColumnTile(1, 1, 1, V)

    def body(out: Any) -> None:
        cc.emit_tile(
            tile, (4,), (cc.Taps(1), cc.Taps(0)),
            lambda *_: out[0], lambda *_: out[0],
            lambda r, h, column, value: T.buffer_store(out, value, [column]),
        )  # fmt: skip

    np.testing.assert_array_equal(run_snippet(body, shape=(V,)), np.zeros(V))
