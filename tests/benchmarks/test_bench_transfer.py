"""The table of transfer tuning; its figures are made up, but for one small run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import bench_transfer
from benchmarks.bench_transfer import HEADER, cells
from benchmarks.transfer_row import Bench, Budget
from benchmarks.transfer_rows import Row, Spent, keep_row, read_rows
from tests.schedules.kernels import HOST
from tests.transfer.tuning import OPTIONS, network

SEARCH = Spent(500.0, 400, [(10.0, 9.0), (20.0, 9.0), (40.0, 5.0), (300.0, 4.0)])
TRANSFER = Spent(20.0, 30, [(4.0, 8.0), (10.0, 5.0)])
ROW = Row(
    "net", "other", "TVM's default",
    {"search": SEARCH, "transfer": TRANSFER, "unmeasured": replace(TRANSFER, seconds=1.0)},
    {"start": 20.0, "search": 4.0, "transfer": 5.0, "unmeasured": 8.0},
    {"start": 1.0, "search": 5.0, "transfer": 4.0, "unmeasured": 2.5},
    480.0, 15.0, "A Fine CPU, avx2, 1 thread",
)  # fmt: skip


def test_a_row() -> None:
    line = dict(zip(HEADER, cells(ROW, "A"), strict=True))
    assert line["share"] == "0.80" and line["share unmeasured"] == "0.50"
    assert line["search, s"] == "500 (400)" and line["of the search's time"] == "4.0%"
    # The search's estimate is 5 ms, as low as transfer's last, after 40 s: twice transfer's 20.
    assert line["search's time to match"] == "2.0x"


def test_a_search_that_never_matches() -> None:
    better = replace(TRANSFER, curve=[(10.0, 3.0)])
    row = replace(ROW, ways={**ROW.ways, "transfer": better})
    assert cells(row, "B")[-2:] == ["never", "B"]


def test_the_summary() -> None:
    slower = replace(ROW, model="bad", start="our plan", ratios={**ROW.ratios, "transfer": 0.9})
    text = bench_transfer.section([ROW, slower])
    assert "**A** A Fine CPU, avx2, 1 thread; search 480 s, transfer 15 s." in text
    assert "geometric mean 0.80, least 0.80; unmeasured 0.50" in text
    assert "Slower than the start: none." in text and "Slower than the start: bad." in text
    assert bench_transfer.plot([ROW, slower])[:4] == b"\x89PNG"


def test_rows_of_two_machines() -> None:
    other = replace(ROW, model="net2", machine="Another, 2 threads")
    text = bench_transfer.section([ROW, other])
    assert "; **B** Another, 2 threads; search 480 s, transfer 15 s." in text
    assert text.count("| A |") == text.count("| B |") == 1


def test_rows_are_kept(tmp_path: Path) -> None:
    """A row takes the place of an older one of the same pair; curves keep their steps."""
    path = tmp_path / "rows.json"
    assert read_rows(path) == []
    other = replace(ROW, start="our plan")
    keep_row(replace(ROW, machine="old"), path)
    keep_row(other, path)
    assert keep_row(ROW, path) == read_rows(path)
    first, second = read_rows(path)
    assert (first.machine, first.start, second.start) == (ROW.machine, ROW.start, "our plan")
    assert first.ways["search"].curve == [(10.0, 9.0), (40.0, 5.0), (300.0, 4.0)]
    assert first.time_to_match() == ROW.time_to_match()
    assert list(tmp_path.iterdir()) == [path]


def test_a_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two networks whose kernels are of the same classes."""
    sizes = {"small": (6, 4), "large": (8, 6)}
    shapes = {name: (1, filters, size, size) for name, (size, filters) in sizes.items()}
    arrays = {
        name: {"x": np.random.default_rng(0).standard_normal(shape).astype("float32")}
        for name, shape in shapes.items()
    }
    load: Callable[[str], object] = lambda name: network(*sizes[name])  # noqa: E731
    bench = Bench(
        tmp_path, HOST, Budget(600.0, 600.0, trials=4), "here", load, arrays.__getitem__, OPTIONS
    )
    row = bench.row("large", "small", "TVM's default")
    assert set(row.ratios) == set(row.ms) == {"start", "search", "transfer", "unmeasured"}
    assert all(value > 0 for value in row.ms.values())
    assert row.ways["search"].candidates > 0 and row.ways["transfer"].candidates > 0
    assert row.ways["unmeasured"].candidates == 0
    assert len(cells(row, "A")) == len(HEADER)

    # Another run in the same folder measures nothing more and takes the search's time for what it
    # was. Which changes it keeps is decided anew, by timing the whole model.
    records = tmp_path / "large" / "database_tuning_record.json"
    before = records.read_bytes()
    again = Bench(tmp_path, HOST, bench.budget, "here", load, arrays.__getitem__, OPTIONS).search(
        "large"
    )
    assert records.read_bytes() == before
    first = row.ways["search"]
    assert again.spent == first
