"""Sparse convolution kernels against the FMA peak and dense kernels, and where they break even.

Run ``python -m benchmarks.bench_sparse_kernels [--networks NAME]... [--write]``. One thread. Runs
of the peak's FMA chains alternate with those of each kernel, since the clock of a shared machine
wanders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import track

from benchmarks import results
from benchmarks.machine import describe_machine
from benchmarks.tvm_threads import prepare_tvm_threads

if TYPE_CHECKING:
    from benchmarks.sparse_kernels import Measured, Point

# By network: (in channels, map, out channels, kernel, stride).
SHAPES = {
    "ResNet-50": (
        (64, 56, 64, 3, 1), (128, 28, 128, 3, 1), (256, 14, 256, 3, 1), (512, 7, 512, 3, 1),
        (128, 56, 128, 3, 2), (64, 56, 256, 1, 1), (512, 28, 128, 1, 1), (256, 14, 1024, 1, 1),
        (512, 7, 2048, 1, 1), (256, 56, 512, 1, 2),
    ),
    "VGG-19": (
        (64, 224, 64, 3, 1), (128, 112, 128, 3, 1), (256, 56, 256, 3, 1), (512, 28, 512, 3, 1),
        (512, 14, 512, 3, 1),
    ),
    "MobileNetV2": (
        (16, 112, 96, 1, 1), (24, 56, 144, 1, 1), (192, 28, 32, 1, 1), (96, 14, 576, 1, 1),
        (960, 7, 160, 1, 1), (320, 7, 1280, 1, 1),
    ),
}  # fmt: skip
DENSITIES = (0.05, 0.1, 0.25, 0.5)
"""The densities of the table; more are measured to find where kernels break even."""
_BEYOND = (0.75, 0.9)

HEADER = (
    "shape",
    "algorithm",
    *(f"density {density}" for density in DENSITIES),
    "best direct kernel",
    "breaks even at",
    "best dense kernel",
    "breaks even at",
)


@dataclass(frozen=True)
class Row:
    """One shape of one network."""

    name: str
    measured: Measured

    def cells(self) -> list[list[str]]:
        """A line for each algorithm, under `HEADER`."""
        lines = [
            [self.name, algorithm, *_at_densities(points), *self._break_evens(points)]
            for algorithm, points in self.measured.points.items()
        ]
        for algorithm, reason in self.measured.refused.items():
            lines.append([self.name, algorithm, f"refused: {reason}", *[""] * (len(HEADER) - 3)])
        return lines

    def _break_evens(self, points: Sequence[Point]) -> list[str]:
        from benchmarks.sparse_kernels import break_even

        densities = [point.density for point in points]
        cells = []
        for reference, ratios in (
            (self.measured.direct, [point.to_direct for point in points]),
            (self.measured.dense, [point.to_dense for point in points]),
        ):
            name, seconds, share = reference
            density, beyond = break_even(densities, ratios)
            cells += [f"{name} {seconds * 1e3:.3f} ms {share:.0%}", f"{beyond}{density:.2f}"]
        return cells


def _at_densities(points: Sequence[Point]) -> list[str]:
    """For each density of the table the point nearest to it, its density told if it differs."""
    cells = []
    for density in DENSITIES:
        point = min(points, key=lambda point: abs(point.density - density))
        cell = f"{point.seconds * 1e3:.3f} ms {point.of_peak:.0%}"
        differs = abs(point.density - density) > 0.02
        cells.append(f"{cell} (at {point.density:.2f})" if differs else cell)
    return cells


def section(rows: Sequence[Row], missing: Sequence[str], machine: dict[str, Any]) -> str:
    """Return the section of RESULTS.md; `missing` algorithms aren't registered."""
    parts = [
        "## Sparse kernels, 1 thread",
        f"`python -m benchmarks.bench_sparse_kernels` on {machine['cpu']}, "
        f"{', '.join(machine['isa'])}. Runs of each kernel and of independent FMA chains in turn, "
        "the best of 3 in each round: median time, and median share of what the chains reach, "
        "counting for sparse kernels the nonzero weights alone. The weights are random and pruned "
        "by magnitude: for sparse_spatial_pack and block_sparse columns of 16 filters together, "
        "for csr single weights, for fkw 3x3 kernels to 4 weights in one of 8 patterns. A "
        "kernel breaks even at the density from which on it is slower than the dense one (> and "
        "<: than all or none that were measured, 0.05 to 0.9). Direct kernels are those without "
        "Winograd's savings. Each kernel has its data in the layout that it likes best.",
        results.markdown_table(HEADER, [line for row in rows for line in row.cells()]),
    ]
    if missing:
        parts.append(f"Not measured, since no algorithm has the name: {', '.join(missing)}.")
    return "\n\n".join(parts)


def bench_shape(network: str, shape: tuple[int, ...], rounds: int) -> Row:
    """Measure one shape of `SHAPES`."""
    from benchmarks.sparse_kernels import measure
    from tvm_ext.schedules.conv_workload import ConvWorkload
    from tvm_ext.schedules.peak import fma_probe
    from tvm_ext.target import resolve

    channels, size, out, kernel, stride = shape
    pad = (kernel // 2,) * 2
    workload = ConvWorkload(
        1, channels, (size, size), out, (kernel,) * 2, (stride,) * 2, pad, pad, (1, 1)
    )
    target = resolve()
    name = f"{network} {kernel}x{kernel}/{stride}, {channels}x{size}x{size} to {out}"
    densities = (*DENSITIES, *_BEYOND)
    return Row(name, measure(workload, densities, target, fma_probe(target), rounds))


@click.command()
@click.option("--networks", multiple=True, type=click.Choice(list(SHAPES)), help="Default: all.")
@click.option("--rounds", default=25, show_default=True)
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(networks: tuple[str, ...], rounds: int, write: bool) -> None:
    """Time sparse convolution kernels on one thread."""
    prepare_tvm_threads(1)
    from benchmarks.sparse_kernels import SCHEMES
    from tvm_ext.schedules import algorithms

    console = Console()
    jobs = [(network, shape) for network in networks or SHAPES for shape in SHAPES[network]]
    rows = [bench_shape(*job, rounds) for job in track(jobs, "kernels", console=console)]
    missing = [name for name in SCHEMES if name not in algorithms()]
    body = section(rows, missing, describe_machine())
    console.print(body, markup=False)
    if write:
        results.write_section("sparse-kernels", body)


if __name__ == "__main__":
    main()
