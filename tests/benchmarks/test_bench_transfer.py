"""The table of transfer tuning; its figures are made up, but for one small run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import bench_transfer
from benchmarks.bench_transfer import HEADER, cells
from benchmarks.transfer_row import Bench, Budget, Row, Way
from tests.schedules.kernels import HOST
from tests.transfer.tuning import OPTIONS, network
from tvm_ext.plan import Plan

MACHINE = {"cpu": "A Fine CPU", "isa": ["avx2"], "logical_cpus": 2}
NONE = Plan(target="", layers=[])
SEARCH = Way(NONE, 500.0, 400, [(10.0, 9.0), (40.0, 5.0), (300.0, 4.0)], 3)
TRANSFER = Way(NONE, 20.0, 30, [(4.0, 8.0), (10.0, 5.0)], 2)
ROW = Row(
    "net", "other", "TVM's default",
    {"search": SEARCH, "transfer": TRANSFER, "unmeasured": replace(TRANSFER, seconds=1.0)},
    {"start": 20.0, "search": 4.0, "transfer": 5.0, "unmeasured": 8.0},
    {"start": 1.0, "search": 5.0, "transfer": 4.0, "unmeasured": 2.5},
)  # fmt: skip


def test_a_row() -> None:
    line = dict(zip(HEADER, cells(ROW), strict=True))
    assert line["share"] == "0.80" and line["share unmeasured"] == "0.50"
    assert line["search, s"] == "500 (400)" and line["of the search's time"] == "4.0%"
    # The search's estimate is 5 ms, as low as transfer's last, after 40 s: twice transfer's 20.
    assert line["search's time to match"] == "2.0x"


def test_a_search_that_never_matches() -> None:
    better = replace(TRANSFER, curve=[(10.0, 3.0)])
    row = replace(ROW, ways={**ROW.ways, "transfer": better})
    assert cells(row)[-1] == "never"


def test_the_summary() -> None:
    slower = replace(ROW, model="bad", start="our plan", ratios={**ROW.ratios, "transfer": 0.9})
    text = bench_transfer.section([ROW, slower], (480.0, 15.0), MACHINE, 1)
    assert "1 thread." in text and "measures for 480 s" in text and "measures for 15 s" in text
    assert "geometric mean 0.80, least 0.80; unmeasured 0.50" in text
    assert "Slower than the start: none." in text and "Slower than the start: bad." in text
    assert bench_transfer.plot([ROW, slower])[:4] == b"\x89PNG"


def test_a_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two networks whose kernels are of the same classes."""
    sizes = {"small": (6, 4), "large": (8, 6)}
    shapes = {name: (1, filters, size, size) for name, (size, filters) in sizes.items()}
    arrays = {
        name: {"x": np.random.default_rng(0).standard_normal(shape).astype("float32")}
        for name, shape in shapes.items()
    }
    load: Callable[[str], object] = lambda name: network(*sizes[name])  # noqa: E731
    bench = Bench(tmp_path, HOST, Budget(600.0, 600.0, trials=4), load, arrays.__getitem__, OPTIONS)
    row = bench.row("large", "small", "TVM's default")
    assert set(row.ratios) == set(row.ms) == {"start", "search", "transfer", "unmeasured"}
    assert all(value > 0 for value in row.ms.values())
    assert row.ways["search"].candidates > 0 and row.ways["transfer"].candidates > 0
    assert row.ways["unmeasured"].candidates == 0
    assert len(cells(row)) == len(HEADER)

    # Another run in the same folder measures nothing more and takes the search's time for what it
    # was. Which changes it keeps is decided anew, by timing the whole model.
    records = tmp_path / "large" / "database_tuning_record.json"
    before = records.read_bytes()
    again = Bench(tmp_path, HOST, bench.budget, load, arrays.__getitem__, OPTIONS).search("large")
    assert records.read_bytes() == before
    first = row.ways["search"]
    assert (again.seconds, again.candidates) == (first.seconds, first.candidates)
    assert again.curve == first.curve
