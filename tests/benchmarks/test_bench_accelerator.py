"""The tables and the figure of cycles on accelerators of several sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from benchmarks.accelerator_findings import findings
from benchmarks.accelerator_networks import (
    mobilenet_v1,
    mobilenet_v1_without_depthwise,
    resnet18,
)
from benchmarks.accelerator_points import MIB, Point, Setup, run
from benchmarks.bench_accelerator import HEADER, check, plot, row, section, setups, stack
from tvm_ext.codegen.network_reference import run_reference_all


def point(setup: Setup, cycles: int) -> Point:
    kinds = {"CONV": cycles // 2, "DEPTH": cycles // 4, "POOL": cycles - 3 * (cycles // 4)}
    if setup.depthwise == "software":
        kinds["DEPTH"] *= 8
    return Point(setup, cycles, kinds, 0.5, 0.9, 1000, 1.25, 0.5)


def made_up() -> dict[Setup, Point]:
    """Cycles as the paper has them for its own flow, and half of the better mode for ours."""
    points = {}
    for setup in setups(["mobilenet_v1", "resnet18"]):
        tiled = setup.sram_bytes < MIB
        cycles = {True: (4000, 2000), False: (1000, 1500)}[tiled][setup.parallel == "input"]
        if setup.mapping == "auto":
            cycles = 500 + 100 * (setup.parallel == "input")
        points[setup] = point(setup, cycles * 64 // setup.pes)
    return points


def test_findings_are_looked_for_in_the_points() -> None:
    points = made_up()
    assert [finding.holds for finding in findings(points, "baseline")] == [True] * 5
    assert [finding.holds for finding in findings(points, "auto")] == [
        True,
        False,
        True,
        True,
        True,
    ]
    check(points)
    slow = Setup("resnet18", "auto")
    with pytest.raises(RuntimeError, match="resnet18: 2001 cycles against 4000"):
        check({**points, slow: point(slow, 2001)})
    untiled = Setup("mobilenet_v1", "baseline", sram_bytes=256 * MIB)
    with pytest.raises(RuntimeError, match="not found: untiled"):
        check({**points, untiled: point(untiled, 9000)})


def test_cells() -> None:
    setup = Setup("resnet18", "auto", 128, MIB, "input")
    auto = point(setup, 2_000_000)
    baseline = point(replace(setup, mapping="baseline"), 5_000_000)
    assert row(baseline, auto) == [
        "1 MiB, 128 I", "5.00 M", "2.00 M", "2.50x", "50.0 %", "90.0 %", "1.2", "0.5",
    ]  # fmt: skip
    assert len(HEADER) == 8
    assert stack(auto) == [1_000_000, 500_000, 0, 500_000]


def test_section_has_every_table() -> None:
    body = section(made_up(), {"cpu": "a CPU"})
    assert body.count("### ") == 5
    assert body.count("| 256 MiB, 128 O |") == 4
    assert "doesn't hold" in body


def test_plot_shows_every_panel(tmp_path: Path) -> None:
    points = made_up()
    plot(points, tmp_path / "one.png")
    plot({s: point(s, 2 * p.cycles) for s, p in points.items()}, tmp_path / "two.png")
    one, two = imread(tmp_path / "one.png"), imread(tmp_path / "two.png")
    assert one.shape == two.shape
    assert (one != two).any()


def test_networks_have_the_known_sizes() -> None:
    """569 and 1814 million products, as the papers say (MobileNetV1: 569 million)."""
    full = mobilenet_v1()
    assert full.macs() == pytest.approx(569e6, rel=0.005)
    assert resnet18().macs() == pytest.approx(1814e6, rel=0.005)
    parts = mobilenet_v1_without_depthwise()
    assert len(parts) == 14
    depthwise = full.macs() - sum(part.macs() for part in parts)
    assert depthwise == pytest.approx(17.5e6, rel=0.01)


def test_activations_spread_over_int8() -> None:
    network = mobilenet_v1(64, 0.25, 50)
    x = np.random.default_rng(0).integers(-128, 128, (1, 3, 64, 64)).astype("int8")
    values = run_reference_all(network, {"input": x})
    for layer in network.layers[:-3]:
        assert len(np.unique(values[layer.output])) > 30
        assert (np.abs(values[layer.output].astype(int)) == 127).mean() < 0.5


def test_a_point_is_simulated() -> None:
    setup = Setup("mobilenet_v1", "baseline", sram_bytes=256 * MIB)
    made = run(setup)
    assert made.cycles == sum(made.kinds.values())
    assert made.kinds.keys() >= {"CONV", "DEPTH", "REQUANT"}
    assert made.utilization == pytest.approx(mobilenet_v1().macs() / (64 * made.cycles))
    assert 0 < made.utilization_3x3 < 1
