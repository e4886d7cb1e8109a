"""Cuts of an extent: even tiles, overlapping panels, equal parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tests.schedules.snippets import run_snippet
from tvm_ext.schedules import cuts, emit


@pytest.mark.parametrize("width", [1, 3, 6, 7])
@pytest.mark.parametrize("extent", [1, 5, 6, 7, 13, 49])
def test_split_covers_the_extent_in_even_tiles(extent: int, width: int) -> None:
    parts = cuts.split_extent(extent, width)
    assert sum(count * size for count, size in parts) == extent
    sizes = [size for _, size in parts]
    assert max(sizes) <= width
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("extent", [4, 5, 8, 11])
def test_starts_cover_the_extent_without_leaving_it(extent: int) -> None:
    starts = [cuts.panel_start(i, 4, extent) for i in range(-(-extent // 4))]
    assert set().union(*(range(s, s + 4) for s in starts)) == set(range(extent))


@pytest.mark.parametrize("extent", [3, 8, 11])
def test_starts_in_a_loop_are_those_of_its_numbers(extent: int) -> None:
    panels = -(-extent // 4)

    def body(out: Any) -> None:
        with emit.loop(panels) as panel:
            start = tirx.Cast("float32", cuts.panel_start(panel, 4, extent))
            T.buffer_store(out, start, [panel])

    want = [cuts.panel_start(i, 4, extent) for i in range(panels)]
    np.testing.assert_array_equal(run_snippet(body, shape=(panels,)), want)


@pytest.mark.parametrize(("blocks", "width"), [(1, 1), (5, 2), (6, 3), (7, 3), (2, 2)])
def test_panels_cover_all_blocks_and_the_last_overlaps(blocks: int, width: int) -> None:
    starts = [cuts.panel_start(p, width, blocks) for p in range(-(-blocks // width))]
    assert set().union(*(range(s, s + width) for s in starts)) == set(range(blocks))
    data = np.random.default_rng(0).standard_normal((3, blocks, 2)).astype("float32")
    panels = cuts.cut_panels(data, 1, width, at=0)
    assert panels.shape == (len(starts), 3, width, 2)
    for panel, start in zip(panels, starts, strict=True):
        np.testing.assert_array_equal(panel, data[:, start : start + width])


def test_a_panel_longer_than_the_axis_ends_in_zeros() -> None:
    data = np.arange(1, 7, dtype="float32").reshape(2, 3)
    (panel,) = cuts.cut_panels(data, 1, 5, at=0)
    np.testing.assert_array_equal(panel, [[1, 2, 3, 0, 0], [4, 5, 6, 0, 0]])


def test_divisors_rise_up_to_the_limit() -> None:
    assert cuts.divisors(12) == (1, 2, 3, 4, 6, 12)
    assert cuts.divisors(13) == (1, 13)
    assert [cuts.divisors(n, 8)[-1] for n in (1, 7, 12, 13, 64)] == [1, 7, 6, 1, 8]
