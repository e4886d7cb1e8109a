"""The table and the plot of accuracy against latency by block size."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.image import imread

torch = pytest.importorskip("torch")

from benchmarks import digits  # noqa: E402
from benchmarks.bench_block_size import HEADER, Point, plot, row, section, time_models  # noqa: E402

DENSE, BLOCK = Point(0, 0.97, 8.0, "spatial_pack"), Point(16, 0.965, 2.0, "block_sparse")


def test_cells() -> None:
    assert row(BLOCK, DENSE) == ["16", "96.50", "0.50", "2.00", "4.00x", "block_sparse"]
    assert row(DENSE, DENSE) == ["dense", "97.00", "", "8.00", "", "spatial_pack"]
    assert len(row(BLOCK, DENSE)) == len(HEADER)
    assert "| 16 | 96.50 |" in section([DENSE, BLOCK], 5, {"cpu": "a CPU", "isa": ["avx2"]})


def test_plot_shows_every_point(tmp_path: Path) -> None:
    plot([DENSE, BLOCK], tmp_path / "one.png")
    plot([DENSE, BLOCK, Point(32, 0.9, 1.0, "block_sparse")], tmp_path / "two.png")
    one, two = imread(tmp_path / "one.png"), imread(tmp_path / "two.png")
    assert one.shape == two.shape
    assert (one[..., :3] < 0.9).any()
    assert (one != two).any()


def test_models_are_compiled_and_timed_in_turns() -> None:
    torch.manual_seed(0)
    models = {rows: digits.VggLike(16, stride=2).eval() for rows in (0, 16)}
    times, kernels = time_models(models, rounds=2)
    assert sorted(times.seconds) == ["0", "16"]
    assert all(len(seconds) == 2 for seconds in times.seconds.values())
    assert list(kernels) == [0, 16]
    assert kernels[0]
