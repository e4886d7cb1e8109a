"""Sweeps: costs worked out by hand, the grid, failures, processes, the table and the CSV file."""

from __future__ import annotations

import csv
from dataclasses import asdict, replace
from pathlib import Path

import onnx
import pytest

from tests.codegen.quantized_cnns import quantized_model, small_cnn
from tests.codegen.sweep_networks import conv_network
from tvm_ext import codegen
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import AcceleratorError, QuantizationError
from tvm_ext.codegen.sweep import Failure, Row, Sweep, run_point, sweep
from tvm_ext.codegen.sweep.processes import run_in_processes
from tvm_ext.errors import ArtifactError, OptionError

# 144 pixels, 8 to 70 channels; without overlap every cycle is of one instruction.
NETWORK = conv_network(channels=8, filters=70, size=12)
SERIAL = Accelerator(
    double_buffering=False, energy_per_mac_pj=2.0, energy_per_sram_byte_pj=0.0,
    energy_per_dram_byte_pj=3.0,
)  # fmt: skip
MACS = 144 * 8 * 70
INPUT, OUTPUT, WEIGHTS, BIAS, SCALES, SUMS = 144 * 8, 144 * 70, 8 * 70, 4 * 70, 4 * 70, 4 * 144 * 70


def dma(nbytes: int) -> int:
    """Latency, and a bus of 16 bytes."""
    return 64 + -(-nbytes // 16)


def test_costs_by_hand() -> None:
    row = run_point([(NETWORK, 1)], SERIAL, "auto")
    assert isinstance(row, Row)
    # Weights with bias and scales, the input, a convolution, the output; the rest are registers.
    conv = 8 + 144 * 8 * 2
    sets = row.instructions - 5
    assert row.cycles == dma(WEIGHTS + BIAS + SCALES) + dma(INPUT) + sets + conv + dma(OUTPUT)
    assert row.cycles_by_kind == {"CONV": row.cycles}
    assert (row.macs, row.dma_write_bytes) == (MACS, OUTPUT)
    assert row.dma_read_bytes == WEIGHTS + BIAS + SCALES + INPUT
    assert row.energy_pj == 2.0 * MACS + 3.0 * (row.dma_read_bytes + row.dma_write_bytes)
    assert row.utilization == MACS / (64 * row.cycles)
    assert row.seconds == row.cycles / 500e6
    assert row.label == "512 KiB 64 O"


def test_the_baseline_takes_sums_through_system_memory() -> None:
    row = run_point([(NETWORK, 1)], SERIAL, "baseline")
    assert isinstance(row, Row)
    # Registers of the two parts: 9 of the instructions beside them are not OP_SET.
    both = (
        dma(WEIGHTS + BIAS) + dma(INPUT) + 8 + 144 * 8 * 2 + dma(SUMS)
        + dma(SCALES) + dma(SUMS) + 8 + -(-OUTPUT // 64) + dma(OUTPUT)
    )  # fmt: skip
    assert row.cycles == both + row.instructions - 9
    assert row.cycles_by_kind.keys() == {"CONV", "REQUANT"}
    # What comes behind the end of the convolution is of the requantisation.
    assert row.cycles_by_kind["REQUANT"] > dma(SUMS) + dma(SCALES) + dma(SUMS) + dma(OUTPUT)
    assert sum(row.cycles_by_kind.values()) == row.cycles


def test_networks_and_runs_add_up() -> None:
    other = conv_network(channels=16, filters=16, size=9, kernel=3, depthwise=True)
    one, two = (run_point([(network, 1)], SERIAL, "auto") for network in (NETWORK, other))
    both = run_point([(NETWORK, 1), (other, 3)], SERIAL, "auto")
    assert isinstance(one, Row)
    assert isinstance(two, Row)
    assert isinstance(both, Row)
    assert both.cycles == one.cycles + 3 * two.cycles
    assert both.cycles_by_kind == {"CONV": one.cycles, "DEPTH": 3 * two.cycles}
    assert both.macs == MACS + 3 * 49 * 9 * 16
    assert both.energy_pj == one.energy_pj + 3 * two.energy_pj
    assert both.subgraphs == 2


def test_the_grid_is_every_combination_in_order() -> None:
    found = sweep(
        NETWORK, pe=[64, 128], sram=["64KiB", 2**20], parallel=("output", "input"), processes=1,
        mapping=["auto", "baseline"],
    )  # fmt: skip
    points = [
        (p.accelerator.pes, p.accelerator.sram_bytes, p.accelerator.parallel, p.mapping)
        for p in found.points
    ]
    assert points == [
        (pes, sram, parallel, mapping)
        for pes in (64, 128)
        for sram in (64 * 1024, 2**20)
        for parallel in ("output", "input")
        for mapping in ("auto", "baseline")
    ]
    assert all(isinstance(point, Row) for point in found.points)
    # 70 filters are two rounds of 64 PEs, one of 128; input-parallel there is one of 8 channels.
    by_point = dict(zip(points, found.rows, strict=True))
    fast, slow = (by_point[pes, 2**20, "output", "auto"].cycles for pes in (128, 64))
    assert 144 * 8 * 0.9 < slow - fast <= 144 * 8


def test_one_value_alone_and_the_same_point_twice() -> None:
    found = sweep(NETWORK, pe=[32, 32], sram="64KiB", processes=1, dma_bytes_per_cycle=[8, 16])
    assert [p.accelerator.dma_bytes_per_cycle for p in found.points] == [8, 16]
    assert {(p.accelerator.pes, p.accelerator.sram_bytes) for p in found.points} == {(32, 65536)}


def test_the_base_has_all_other_options() -> None:
    base = replace(SERIAL, pes=16, sram_bytes=2**16, parallel="input", depthwise="software")
    (row,) = sweep(NETWORK, base=base, processes=1).points
    assert row.accelerator == base
    (row,) = sweep(NETWORK, base=base, pe=8, fill_cycles=100, processes=1).points
    assert row.accelerator == replace(base, pes=8, fill_cycles=100)


def test_points_that_fail_say_why() -> None:
    depthwise = conv_network(channels=16, size=9, kernel=3, depthwise=True)
    found = sweep(
        [NETWORK, depthwise], sram=[64, "64KiB"], depthwise=["none", "hardware"], processes=1
    )
    small, also_small, none, fits = found.points
    assert found.failures == (small, also_small, none)
    assert found.rows == (fits,)
    assert isinstance(small, Failure)
    assert isinstance(none, Failure)
    assert small.error == none.error == "LoweringError"
    assert "layer conv: the smallest tile needs" in small.reason
    assert "allowed: 64, the sram_bytes" in small.reason
    assert "depthwise 'none'" in none.reason
    text = " ".join(str(found).split())
    assert "64 KiB 64 O, depthwise none, mapping auto: LoweringError: layer conv" in text


def test_the_table_has_what_varies() -> None:
    found = sweep(NETWORK, pe=[64, 128], dma_latency_cycles=[0, 7], processes=1)
    table = found.table()
    assert [str(column.header) for column in table.columns] == [
        "pes", "dma_latency_cycles", "cycles", "ms", "used PEs", "DMA bytes", "energy, uJ", "CONV",
        "*",
    ]  # fmt: skip
    assert str(table.title) == (
        "4 points; * on the front of cycles, SRAM and energy\n"
        "sram 512 KiB, parallel output, depthwise hardware, mapping auto"
    )
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    assert cells[0] == ["64", "64", "128", "128"]
    assert cells[1] == ["0", "7"] * 2
    assert cells[2] == [f"{row.cycles:,}" for row in found.rows]
    best = [row for row, star in zip(found.rows, cells[-1], strict=True) if star == "*"]
    assert tuple(best) == found.pareto()


def test_csv_read_back(tmp_path: Path) -> None:
    found = sweep(NETWORK, pe=[64, 128], sram=[64, "64KiB"], processes=1)
    found.to_csv(tmp_path / "sweep.csv")
    with (tmp_path / "sweep.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == 4
    for line, point in zip(lines, found.points, strict=True):
        for name, value in asdict(point.accelerator).items():
            assert line[name] == str(value)
        assert line["mapping"] == "auto"
        if isinstance(point, Failure):
            assert (line["error"], line["reason"]) == ("LoweringError", point.reason)
            assert line["cycles"] == line["cycles_CONV"] == ""
        else:
            assert int(line["cycles"]) == int(line["cycles_CONV"]) == point.cycles
            assert float(line["energy_pj"]) == point.energy_pj
            assert float(line["utilization"]) == point.utilization
            assert int(line["dma_read_bytes"]) == point.dma_read_bytes
            assert line["error"] == line["reason"] == ""
    with pytest.raises(ArtifactError, match="can't write"):
        found.to_csv(tmp_path / "missing" / "sweep.csv")


def test_progress_is_told_of_every_point() -> None:
    told: list[tuple[int, int, str]] = []
    sweep(NETWORK, pe=[32, 64, 128], processes=1, progress=lambda *report: told.append(report))
    assert told == [
        (0, 3, ""), (1, 3, "512 KiB 32 O"), (2, 3, "512 KiB 64 O"), (3, 3, "512 KiB 128 O"),
    ]  # fmt: skip


def test_two_processes_find_the_same() -> None:
    options = {"pe": [32, 64, 128], "sram": [64, "64KiB"]}
    assert sweep(NETWORK, processes=2, **options) == sweep(NETWORK, processes=1, **options)


def test_a_point_that_takes_too_long_or_breaks_fails_alone() -> None:
    tasks = [(((NETWORK, 1),), SERIAL, "auto"), ((("no network", 1),), SERIAL, "auto")]
    (slow,) = run_in_processes(tasks[:1], 1, timeout_s=0.0)
    assert slow == (0, Failure(SERIAL, "auto", "process", "timed out"))
    (broken,) = run_in_processes(tasks[1:], 1, timeout_s=60.0)  # type: ignore[arg-type]
    assert isinstance(broken[1], Failure)
    assert broken[1].error == "process"
    assert "AttributeError" in broken[1].reason


def test_a_model_is_cut_for_each_point() -> None:
    found = sweep(
        quantized_model("QDQ", "uint8"), depthwise=["none", "hardware"], sram="64KiB", processes=1
    )
    none, hardware = found.rows
    assert (none.subgraphs, hardware.subgraphs) == (2, 1)
    # The depthwise layer, 24 channels of 9x9 with 3x3 taps, is on the CPU.
    assert hardware.macs - none.macs == 24 * 9 * 9 * 9
    assert "DEPTH" not in none.cycles_by_kind
    assert hardware.cycles_by_kind["DEPTH"] > 0
    # The front doesn't prefer leaving work to the CPU.
    assert hardware in found.pareto()


def test_a_float_model_is_refused_with_the_remedy() -> None:
    with pytest.raises(QuantizationError, match=r"float.*tvm_ext\.quantize"):
        sweep(small_cnn(), processes=1)


def test_a_model_of_which_nothing_is_taken_fails_at_every_point() -> None:
    model = quantized_depthwise_alone()
    none, hardware = sweep(model, depthwise=["none", "hardware"], processes=1).points
    assert isinstance(none, Failure)
    assert isinstance(hardware, Row)
    assert "takes none of the model's operators" in none.reason
    assert "depthwise=none" in none.reason


def quantized_depthwise_alone() -> onnx.ModelProto:
    """One depthwise convolution with integer input and output."""
    from tests.codegen.qdq_models import QdqModel

    model = QdqModel()
    x, w = model.input("x", (1, 8, 6, 6)), model.weight((8, 1, 3, 3))
    model.output(model.op("Conv", [x, w], group=8))
    return model.model()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pe": []}, "sweep option pes has no values"),
        ({"clock": [1]}, "sweep option 'clock'; allowed: pe, sram, pes, sram_bytes"),
        ({"pes": [1]}, "sweep option 'pes'; allowed: pe, sram"),
        ({"mapping": "best"}, "mapping='best'; allowed: auto, search, baseline"),
        ({"processes": 0}, "processes=0; allowed: 1 or more"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        sweep(NETWORK, **options)  # type: ignore[arg-type]


def test_wrong_hardware_and_no_model() -> None:
    with pytest.raises(AcceleratorError, match="pes is 0; allowed: a whole number from 1"):
        sweep(NETWORK, pe=[64, 0])
    with pytest.raises(AcceleratorError, match="the size '5 lightyears' can't be read"):
        sweep(NETWORK, sram="5 lightyears")
    with pytest.raises(OptionError, match="the model has no networks"):
        sweep([])


def test_the_package_has_the_function_not_the_folder() -> None:
    assert codegen.sweep is sweep
    assert codegen.Sweep is Sweep


def test_a_sweep_without_points_prints() -> None:
    assert "0 points" in str(Sweep(()))
