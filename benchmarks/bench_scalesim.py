"""Our timing model against SCALE-Sim's, convolution by convolution.

Run ``python -m benchmarks.bench_scalesim [--jobs N] [--write]``. SCALE-Sim is an independent
simulator of systolic arrays; it has an environment of its own, which ``make bench`` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import click
from rich.console import Console
from rich.progress import track

from benchmarks import results, scalesim_engine
from benchmarks.accelerator_networks import mobilenet_v1, resnet18
from benchmarks.ranks import spearman
from benchmarks.scalesim_engine import Array, ScaleSimError
from benchmarks.scalesim_rows import Layer, Row, check, layers, measure
from tvm_ext.codegen.network import Network

LEAST_RANK_CORRELATION = 0.9
"""Of the layers' cycles without fill and drain."""
_LAYER_HEADER = (
    "layer", "layers", "SCALE-Sim", "fill, drain", "without", "ours", "computing", "without fill",
    "SCALE-Sim / ours", "bytes, SCALE-Sim", "bytes, ours",
)  # fmt: skip
_TOTAL_HEADER = (
    "network", "array", "SCALE-Sim", "fill, drain", "ours", "SCALE-Sim / ours", "without fill",
    "rank correlation", "rank correlation without fill", "bytes, SCALE-Sim / ours",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A network on an array; `in_full` has a table of its own, layer by layer."""

    title: str
    network: Callable[[], Network]
    array: Array
    in_full: bool = False


def _small_mobilenet() -> Network:
    return mobilenet_v1(64, 0.25)


_SMALL = "MobileNetV1, 64x64, a quarter as wide"
CASES = (
    Case("ResNet-18, 224x224", resnet18, Array("os", 32, 32), in_full=True),
    Case("MobileNetV1, 224x224", mobilenet_v1, Array("os", 32, 32), in_full=True),
    Case(_SMALL, _small_mobilenet, Array("ws", 64, 1), in_full=True),
    Case(_SMALL, _small_mobilenet, Array("os", 1, 64)),
    Case(_SMALL, _small_mobilenet, Array("os", 8, 8)),
    Case(_SMALL, _small_mobilenet, Array("os", 16, 16)),
)


@dataclass(frozen=True)
class Totals:
    """A network's layers together, each as often as it has them."""

    rows: Sequence[Row]

    def sum(self, value: Callable[[Row], int]) -> int:
        """Over all layers."""
        return sum(value(row) * row.layer.count for row in self.rows)

    @property
    def ratio(self) -> float:
        """SCALE-Sim's cycles to ours."""
        return self.sum(lambda r: r.theirs.cycles) / self.sum(lambda r: r.cycles)

    @property
    def steady_ratio(self) -> float:
        """The same without fill and drain."""
        return self.sum(lambda r: r.their_steady) / self.sum(lambda r: r.our_steady)

    @property
    def byte_ratio(self) -> float:
        """Of what goes over the bus."""
        return self.sum(lambda r: r.theirs.memory_bytes) / self.sum(lambda r: r.memory_bytes)

    @property
    def rank_correlation(self) -> float:
        """Of the layers' cycles."""
        return spearman([r.theirs.cycles for r in self.rows], [r.cycles for r in self.rows])

    @property
    def steady_rank_correlation(self) -> float:
        """Of the layers' cycles without fill and drain."""
        return spearman([r.their_steady for r in self.rows], [r.our_steady for r in self.rows])


def label(layer: Layer) -> str:
    """Size of the result, window and channels in a few characters."""
    w = layer.window
    stride = f"/{w.stride}" if w.stride > 1 else ""
    size = f"{w.out_height}x{w.out_width}"
    return f"{size}, {w.kernel[0]}x{w.kernel[1]}{stride}, {w.channels} to {w.filters}"


def cells(row: Row) -> list[str]:
    """A line of a network's table."""
    return [
        label(row.layer), str(row.layer.count), f"{row.theirs.cycles:,}", f"{row.their_fill:,}",
        f"{row.their_steady:,}", f"{row.cycles:,}", f"{row.computing:,}", f"{row.our_steady:,}",
        f"{row.theirs.cycles / row.cycles:.2f}", f"{row.theirs.memory_bytes:,}",
        f"{row.memory_bytes:,}",
    ]  # fmt: skip


def total_cells(case: Case, rows: Sequence[Row]) -> list[str]:
    """A line of the table of all cases."""
    totals = Totals(rows)
    return [
        case.title, f"{case.array.dataflow}, {case.array.height}x{case.array.width}",
        f"{totals.sum(lambda r: r.theirs.cycles):,}", f"{totals.sum(lambda r: r.their_fill):,}",
        f"{totals.sum(lambda r: r.cycles):,}", f"{totals.ratio:.3f}", f"{totals.steady_ratio:.3f}",
        f"{totals.rank_correlation:.3f}", f"{totals.steady_rank_correlation:.3f}",
        f"{totals.byte_ratio:.2f}",
    ]  # fmt: skip


def section(cases: Sequence[tuple[Case, Sequence[Row]]]) -> str:
    """Return the section of RESULTS.md."""
    version = cases[0][1][0].theirs.version
    parts = [
        "## Accelerator: cycles against SCALE-Sim",
        f"`python -m benchmarks.bench_scalesim`: dense convolutions, each alone, in SCALE-Sim "
        f'{version} and on our accelerator (`mapping="auto"`). An `os` array of G x L PEs is '
        "our output-parallel mode with `pixel_parallel=G` and L lanes, a `ws` array of L x 1 is "
        "our input-parallel mode with L lanes. SCALE-Sim has three memories of 512 KiB and mode "
        "CALC, in which memory keeps up; ours has one of 1.5 MiB and a bus that does. `without` "
        "is without fill and drain. Ours is the whole layer; `computing` its convolution "
        "instructions alone. Sums count each layer as often as the network has it.",
        results.markdown_table(_TOTAL_HEADER, [total_cells(*each) for each in cases]),
        "SCALE-Sim's cycles are its products' plus fill and drain of each fold: G + L - 2 cycles "
        "for `os`, 2 L - 1 for `ws`, exactly. The products take both the same cycles, layer by "
        "layer, but for the first layer in input-parallel mode: a `ws` array sums over taps and "
        "channels together, our instruction over the channels of one tap, or a row of taps. The "
        "rest of the difference is the fill, which our hardware pays once an instruction and a "
        "systolic array once a fold, and the first load and last store, which SCALE-Sim leaves "
        "out. Layers whose sums are short, as those of MobileNetV1, spend much of an array's time "
        "on it, which is why their order differs until it is taken away. SCALE-Sim counts padding "
        "among the bytes, we the biases and factors; where a `ws` array cuts a sum, its partial "
        "sums go through memory.",
    ]
    for case, rows in cases:
        if case.in_full:
            array = f"{case.array.dataflow}, {case.array.height}x{case.array.width}"
            parts += [
                f"### {case.title}: {array}",
                results.markdown_table(_LAYER_HEADER, [cells(row) for row in rows]),
            ]
    return "\n\n".join(parts)


def check_trends(case: Case, rows: Sequence[Row]) -> None:
    """Refuse another order of the layers' cycles without fill and drain.

    Raises
    ------
    RuntimeError
        The rank correlation is too small.
    """
    found = Totals(rows).steady_rank_correlation
    if found < LEAST_RANK_CORRELATION:
        raise RuntimeError(
            f"{case.title} on {case.array}: rank correlation {found:.3f} without fill; at "
            f"least {LEAST_RANK_CORRELATION} was expected"
        )


@click.command()
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1))
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(jobs: int, write: bool) -> None:
    """Compare cycles with SCALE-Sim's."""
    console = Console()
    try:
        scalesim_engine.interpreter()
    except ScaleSimError as error:
        console.print(f"SCALE-Sim is {error}; RESULTS.md keeps its section.", markup=False)
        return
    found: list[tuple[Case, list[Row]]] = []
    # Threads wait for SCALE-Sim's processes.
    with ThreadPoolExecutor(jobs) as pool:
        for case in track(CASES, "networks", console=console):
            tasks = [
                pool.submit(measure, layer, case.array, scalesim_engine.simulate)
                for layer in layers(case.network())
            ]
            found.append((case, [task.result() for task in tasks]))
            check(found[-1][1], case.array)
            check_trends(case, found[-1][1])
    body = section(found)
    console.print(body, markup=False)
    if write:
        results.write_section("scalesim", body)


if __name__ == "__main__":
    main()
