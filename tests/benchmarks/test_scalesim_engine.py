"""SCALE-Sim's files and reports, with a stand-in for it, and with it where it is there."""

import sys
import textwrap

import pytest

from benchmarks import scalesim_engine
from benchmarks.scalesim_engine import INTERPRETER, Array, ScaleSimError, Window, simulate

WINDOW = Window(4, 3, (3, 3), 2, 10, 9)
STAND_IN = """
    import sys
    from configparser import ConfigParser
    from pathlib import Path
    class scalesim:
        def __init__(self, save_disk_space, verbose, config, topology, layout):
            self.config = ConfigParser()
            self.config.read(config)
            self.line = Path(topology).read_text().splitlines()[1]
        def run_scale(self, top_path):
            array = self.config["architecture_presets"]
            if array["Dataflow"] == "ws":
                raise ValueError("no such dataflow")
            # Where the real one has cycles, the input's height; the kernel's for stalls.
            numbers = [int(n) for n in self.line.split(",")[1:8]]
            folder = Path(top_path, self.config["general"]["run_name"])
            folder.mkdir()
            stalls = int(array["ArrayHeight"]) // 9
            (folder / "COMPUTE_REPORT.csv").write_text(
                f"LayerID, Total Cycles, Stall Cycles,\\n0, {numbers[0]}, {stalls},\\n")
            (folder / "DETAILED_ACCESS_REPORT.csv").write_text(
                "LayerID, DRAM IFMAP Reads, DRAM Filter Reads, DRAM OFMAP Writes,\\n"
                f"0, {numbers[1]}.0, {numbers[4]}, {numbers[5]},\\n")
"""


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """A Python that finds a package `scalesim`, isolated or not."""
    package = tmp_path / "scalesim"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "scale_sim.py").write_text(textwrap.dedent(STAND_IN))
    info = tmp_path / "scalesim-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scalesim\nVersion: 0.1\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv(INTERPRETER, str(python))


def test_files_and_reports(stand_in):
    report = simulate(WINDOW, Array("os", 8, 8))
    # Three steps of 2 and a window of 3 are 9 rows; two steps are 7 pixels.
    assert report.cycles == 9 + 1
    assert report.memory_bytes == 7 + 10 + 9
    assert report.version == "0.1"


def test_failures(stand_in, monkeypatch, tmp_path):
    with pytest.raises(ScaleSimError, match="ValueError: no such dataflow"):
        simulate(WINDOW, Array("ws", 8, 8))
    with pytest.raises(ScaleSimError, match="2 cycles of waiting for memory"):
        simulate(WINDOW, Array("os", 18, 8))
    monkeypatch.setenv(INTERPRETER, str(tmp_path / "nowhere"))
    with pytest.raises(ScaleSimError, match=r"not installed: there is no .*nowhere"):
        simulate(WINDOW, Array("os", 8, 8))


def test_scalesim_itself():
    try:
        scalesim_engine.interpreter()
    except ScaleSimError as error:
        pytest.skip(str(error))
    # ⌈12 / 8⌉ · ⌈9 / 8⌉ times 90 products, 14 cycles for fill and drain.
    assert simulate(WINDOW, Array("os", 8, 8)).cycles == 2 * 2 * (90 + 14)
