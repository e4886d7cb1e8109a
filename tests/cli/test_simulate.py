"""`tvm-ext simulate`: what it prints and writes agrees with the library, and what it refuses."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from xml.etree import ElementTree

import onnx
import pytest

from tests.cli.commands import fails, run_command
from tests.codegen.quantized_cnns import quantized, small_cnn
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.sweep import Row, sweep


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("quantized") / "model.onnx"
    path.write_bytes(quantized("QDQ", "uint8"))
    return path


def row_of(model: Path, **options: object) -> Row:
    (row,) = sweep(onnx.load(model), processes=1, **options).points  # type: ignore[arg-type]
    assert isinstance(row, Row)
    return row


def test_tables_and_files(model: Path, tmp_path: Path) -> None:
    picture, table = tmp_path / "run.svg", tmp_path / "layers.csv"
    result = run_command(
        "simulate", model, "--pe", 32, "--sram", "8KiB", "--parallel", "input",
        "--gantt", picture, "--csv", table,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    row = row_of(model, pe=32, sram="8KiB", parallel="input")
    assert f"cycles: {row.cycles:,}, {1e3 * row.seconds:.3f} ms at 500 MHz" in result.stdout
    assert "pes=32 sram_bytes=8192 parallel=input depthwise=hardware" in result.stdout
    assert f"DMA: {row.dma_read_bytes:,} bytes read, {row.dma_write_bytes:,} wr" in result.stdout
    assert "on the accelerator: 100.00% of multiply-accumulates, 1 subgraph\n" in result.stdout
    assert f"{picture}: accelerator_0" in result.stdout
    by_kind = result.stdout.split("by kind")[1]
    for kind, cycles in row.cycles_by_kind.items():
        assert re.search(rf"{kind} +│ +{cycles:,} ", by_kind)
    assert re.search(rf"total +│ +{row.cycles:,} │ +100.0% │ +{row.macs:,} ", by_kind)
    assert f"{row.utilization:.1%}" in by_kind
    with table.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    by_layer = result.stdout.split("by kind")[0]
    assert all(line["name"] in by_layer for line in lines)
    assert sum(int(line["cycles"]) for line in lines) == row.cycles
    assert sum(int(line["macs"]) for line in lines) == row.macs
    moved = row.dma_read_bytes + row.dma_write_bytes
    assert sum(int(line["memory_bytes"]) for line in lines) == moved
    assert {line["kind"] for line in lines} >= {"CONV", "DEPTH", "POOL", "ELEMENTWISE"}
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_several_subgraphs_and_what_is_left(model: Path, tmp_path: Path) -> None:
    table = tmp_path / "layers.csv"
    result = run_command("simulate", model, "--depthwise", "none", "--csv", table)
    assert result.exit_code == 0, result.stderr
    assert "2 subgraphs\n" in result.stdout
    assert re.search(r"on the CPU: .*nn\.conv2d.*: a depthwise convolution", result.stdout)
    row = row_of(model, depthwise="none")
    assert f"cycles: {row.cycles:,}, " in result.stdout
    with table.open(newline="") as stream:
        names = [line["subgraph"] for line in csv.DictReader(stream)]
    assert list(dict.fromkeys(names)) == ["accelerator_0", "accelerator_1"]


def test_a_hardware_description_and_options_over_it(model: Path, tmp_path: Path) -> None:
    hardware = Accelerator("edge", pes=16, dma_latency_cycles=500, clock_hz=1e8)
    hardware.save(tmp_path / "edge.yaml")
    words = ("simulate", model, "--accelerator", tmp_path / "edge.yaml")
    for more, pes in (((), 16), (("--pe", 128), 128)):
        result = run_command(*words, *more)
        assert result.exit_code == 0, result.stderr
        row = row_of(model, base=hardware, pe=pes)
        assert f"cycles: {row.cycles:,}, {1e3 * row.seconds:.3f} ms at 100 MHz" in result.stdout
        assert f"accelerator: edge: pes={pes}" in result.stdout


def test_mapping(model: Path) -> None:
    result = run_command("simulate", model, "--mapping", "baseline")
    assert result.exit_code == 0, result.stderr
    row = row_of(model, mapping="baseline")
    assert "REQUANT" in row.cycles_by_kind
    assert f"cycles: {row.cycles:,}, " in result.stdout
    assert row.cycles > row_of(model).cycles


def test_what_is_refused(model: Path, tmp_path: Path) -> None:
    float_model = tmp_path / "float.onnx"
    float_model.write_bytes(small_cnn().SerializeToString())
    fails(r"the model is float.*tvm_ext\.quantize", "simulate", float_model)
    fails("no such file", "simulate", tmp_path / "missing.onnx")
    fails("the size '512 bits' can't be read", "simulate", model, "--sram", "512 bits")
    fails("pes is 0; allowed: a whole number from 1", "simulate", model, "--pe", 0)
    fails("layer .*: the smallest tile needs .* allowed: 64", "simulate", model, "--sram", "64B")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("processors: 64")
    fails("unknown keys.*processors", "simulate", model, "--accelerator", wrong)
    fails("no such file", "simulate", model, "--accelerator", tmp_path / "missing.yaml")
    fails("allowed suffixes: .svg", "simulate", model, "--gantt", "run.txt", code=2)
    fails("'both' is not one of", "simulate", model, "--parallel", "both", code=2)
    for option in ("--csv", "--gantt"):
        fails("can't write", "simulate", model, option, tmp_path / "missing" / "run.svg")
