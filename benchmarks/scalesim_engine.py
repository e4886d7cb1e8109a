"""SCALE-Sim (Samajdar et al., "A Systematic Methodology for Characterizing Scalability of DNN
Accelerators using SCALE-Sim", ISPASS 2020) in an interpreter of its own: one layer a call.
"""

from __future__ import annotations

import csv
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.own_interpreter import own_interpreter

INTERPRETER = "TVM_EXT_SCALESIM"
"""The environment variable that names a Python with SCALE-Sim."""

_WORKER = Path(__file__).with_name("scalesim_worker.py")
_RUN = "run"
_CONFIGURATION = """\
[general]
run_name = {run}
[architecture_presets]
ArrayHeight = {height}
ArrayWidth = {width}
ifmapsramszkB = {kib}
filtersramszkB = {kib}
ofmapsramszkB = {kib}
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = {dataflow}
Bandwidth = 16
ReadRequestBuffer = 512
WriteRequestBuffer = 512
[layout]
IfmapCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterCustomLayout = False
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
SparseRep = ellpack_block
OptimizedMapping = false
BlockSize = 8
RandomNumberGeneratorSeed = 40
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""
_TOPOLOGY = "name, height, width, filter height, filter width, channels, filters, stride, sparsity,"
_LAYOUT_COLUMNS = 20
"""Numbers of a layer's memory layout, which SCALE-Sim reads whether or not it uses them."""


class ScaleSimError(RuntimeError):
    """SCALE-Sim isn't installed, or fails."""


@dataclass(frozen=True)
class Window:
    """A dense convolution without padding, as SCALE-Sim takes it.

    Attributes
    ----------
    out_height, out_width : int
        Of the result; the input is what its windows reach, padding included.
    kernel : (rows, columns)
    stride : int
    channels, filters : int
    """

    out_height: int
    out_width: int
    kernel: tuple[int, int]
    stride: int
    channels: int
    filters: int

    @property
    def pixels(self) -> int:
        """Of the result."""
        return self.out_height * self.out_width

    @property
    def taps(self) -> int:
        """Of the window."""
        return self.kernel[0] * self.kernel[1]

    @property
    def terms(self) -> int:
        """Products that are summed up for a result."""
        return self.taps * self.channels

    @property
    def macs(self) -> int:
        """Products."""
        return self.pixels * self.terms * self.filters


@dataclass(frozen=True)
class Array:
    """A systolic array with one SRAM for each of inputs, weights and results.

    Attributes
    ----------
    dataflow : str
        ``os``: results stay in the PEs, a row of PEs for each pixel, a column for each filter.
        ``ws``: weights do, a row for each term of the sums, a column for each filter.
    height, width : int
        PEs.
    sram_kib : int
        KiB of each SRAM.
    """

    dataflow: str
    height: int
    width: int
    sram_kib: int = 512


@dataclass(frozen=True)
class Report:
    """What SCALE-Sim says about a layer.

    Attributes
    ----------
    cycles : int
        Without waiting for memory.
    memory_bytes : int
        Bytes read from and written to system memory.
    version : str
    """

    cycles: int
    memory_bytes: int
    version: str


def interpreter() -> Path:
    """Return the Python that has SCALE-Sim: the variable's, or the one that `make bench` makes.

    Raises
    ------
    ScaleSimError
        There is no such file.
    """
    return own_interpreter(INTERPRETER, "scalesim", ScaleSimError)


def simulate(window: Window, array: Array) -> Report:
    """Run one layer in bandwidth mode CALC, in which memory delivers what the PEs ask for.

    Raises
    ------
    ScaleSimError
        It isn't installed, or fails.
    """
    python = interpreter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scale.cfg").write_text(
            _CONFIGURATION.format(
                run=_RUN, height=array.height, width=array.width, kib=array.sram_kib,
                dataflow=array.dataflow,
            )
        )  # fmt: skip
        (folder / "topology.csv").write_text(f"{_TOPOLOGY}\n{_topology_line(window)}\n")
        ones = ",".join("1" * _LAYOUT_COLUMNS)
        (folder / "layout.csv").write_text(f"name,\nlayer, {ones},\n")
        done = subprocess.run(
            # Isolated: this directory and PYTHONPATH hold modules that hide its own.
            [str(python), "-I", str(_WORKER), str(folder)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise ScaleSimError(f"{window}: {done.stderr.strip().splitlines()[-1:]}")
        return read_report(folder / _RUN, done.stdout.split()[-1])


def read_report(folder: Path, version: str) -> Report:
    """Read the files that SCALE-Sim wrote for one layer."""
    compute = _row(folder / "COMPUTE_REPORT.csv")
    access = _row(folder / "DETAILED_ACCESS_REPORT.csv")
    stalls = int(compute["Stall Cycles"])
    if stalls:
        raise ScaleSimError(f"{stalls} cycles of waiting for memory; in mode CALC there are none")
    columns = ("DRAM IFMAP Reads", "DRAM Filter Reads", "DRAM OFMAP Writes")
    # It counts from 0 and writes the number of the last cycle.
    return Report(
        int(compute["Total Cycles"]) + 1, sum(int(float(access[c])) for c in columns), version
    )


def _topology_line(window: Window) -> str:
    # The input ends with the last window: SCALE-Sim would round a rest up to one more.
    size = [
        (count - 1) * window.stride + taps
        for count, taps in zip((window.out_height, window.out_width), window.kernel, strict=True)
    ]
    values = (*size, *window.kernel, window.channels, window.filters, window.stride)
    return f"layer, {', '.join(map(str, values))}, 1:1,"


def _row(path: Path) -> dict[str, str]:
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file, skipinitialspace=True)
    return {name.strip(): value for name, value in row.items() if name}
