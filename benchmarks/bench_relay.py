"""The same networks loaded from ONNX and from Relay: do they get the same plan, and time?

Run ``python -m benchmarks.bench_relay [--models NAME]... [--threads N]... [--write]``. The exit
status is 1 when a model fails, its outputs differ, or the Relay form takes longer than the bar
allows.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from benchmarks import harness, results, zoo
from benchmarks.accuracy import max_relative_error
from benchmarks.machine import describe_machine
from benchmarks.timing_options import timing_options
from benchmarks.tvm_threads import prepare_tvm_threads, set_tvm_threads

# TVM starts its threads when it is imported, which `prepare_tvm_threads` must come before.
if TYPE_CHECKING:
    import tvm

    import tvm_ext

MODELS = ("mobilenet_v1", "mobilenet_v2", "resnet18", "resnet50", "squeezenet")
ONNX, RELAY = "ONNX", "Relay"
TOLERANCE = 1e-4
"""Largest relative difference between the two forms' outputs."""
LIMIT = 1.05
"""Largest ratio of the Relay form's time to the ONNX form's."""

HEADER = ("model", "ONNX, ms", "Relay, ms", "Relay / ONNX", "difference", "other algorithms")


@dataclass(frozen=True)
class Row:
    """One model at one number of threads."""

    model: str
    times: harness.Result
    error: float
    differing: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """The Relay form's time over the ONNX form's; below 1 is faster."""
        return self.times.ratio(RELAY, ONNX)

    @property
    def good(self) -> bool:
        """Whether outputs agree and the time is within the bar."""
        return self.error <= TOLERANCE and self.ratio <= LIMIT

    def cells(self) -> list[str]:
        """Return the row of the table, under `HEADER`."""
        spans = [
            f"{1e3 * self.times.median(form):.2f} "
            f"({1e3 * self.times.p10(form):.2f}-{1e3 * self.times.p90(form):.2f})"
            for form in (ONNX, RELAY)
        ]
        differing = ", ".join(self.differing) or "none"
        mark = "" if self.good else " MISSED"
        return [self.model, *spans, f"{self.ratio:.3f}{mark}", f"{self.error:.1e}", differing]


def relay_form(mod: tvm.IRModule, folder: Path) -> tvm.IRModule:
    """A network written as a Relay module, and loaded from that."""
    import tvm_ext
    from benchmarks.relay_writer import write_relay

    text, params = write_relay(mod, folder)
    return tvm_ext.load_model(text, params=params)


def differing_layers(a: tvm_ext.Plan, b: tvm_ext.Plan) -> tuple[str, ...]:
    """What two plans of one network don't share, as ``layer: algorithm against algorithm``.

    Layers are compared in their order; what another file calls them doesn't matter.
    """
    if len(a.layers) != len(b.layers):
        return (f"{len(a.layers)} against {len(b.layers)} layers",)
    return tuple(
        f"{one.name}: {_choice(one)} against {_choice(two)}"
        for one, two in zip(a.layers, b.layers, strict=True)
        if _choice(one) != _choice(two)
    )


def bench_model(
    name: str, threads: Sequence[int], target: str, options: dict[str, Any]
) -> dict[int, Row]:
    """Build both forms of a model of the zoo, and time them at each number of threads."""
    import tvm_ext

    inputs = zoo.sample_inputs(name)
    mod = tvm_ext.load_model(zoo.path(name))
    with tempfile.TemporaryDirectory() as folder:
        forms = {ONNX: mod, RELAY: relay_form(mod, Path(folder))}
    built = {form: tvm_ext.build(module, target) for form, module in forms.items()}
    differing = differing_layers(built[ONNX].plan, built[RELAY].plan)
    engines = {form: partial(exe, inputs) for form, exe in built.items()}
    rows = {}
    for count in threads:
        set_tvm_threads(count)
        error = max_relative_error(engines[RELAY](), engines[ONNX]())
        rows[count] = Row(name, harness.compare(engines, **options), error, differing)
    return rows


def section(rows: Sequence[Row], threads: int) -> str:
    """Return the part of RESULTS.md's section for one number of threads."""
    mean = harness.geometric_mean([row.ratio for row in rows])
    return "\n\n".join(
        (
            f"### {threads} thread{'s' if threads > 1 else ''}",
            results.markdown_table(HEADER, [row.cells() for row in rows]),
            f"Geometric mean of the ratio: {mean:.3f} (bar: {LIMIT} for each).",
        )
    )


def _choice(layer: tvm_ext.LayerPlan) -> str:
    return f"{layer.algorithm} {layer.storage}"


def _head(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items())
    return (
        "## The same networks from ONNX and from Relay\n\n"
        f"`python -m benchmarks.bench_relay` on {machine['cpu']}, {machine['logical_cpus']} "
        f"logical processors, {', '.join(machine['isa'])}; Python {machine['python']}, {versions}. "
        "Networks of the zoo, loaded from ONNX and from a Relay text that the benchmark writes of "
        "them. Latency at batch 1, float32: median (10th to 90th percentile) of interleaved rounds "
        "in one process; the ratio is the median over the rounds. Difference: max|a - b| / max|b| "
        "between the outputs. Other algorithms: layers whose plans differ."
    )


@click.command()
@click.option("--models", multiple=True, type=click.Choice(zoo.NAMES), default=MODELS)
@click.option("--target", default="native", show_default=True, help="native, or an LLVM CPU name.")
@timing_options
def main(
    models: tuple[str, ...],
    threads: tuple[int, ...],
    target: str,
    rounds: int,
    min_time: float,
    write: bool,
) -> None:
    """Time networks loaded from ONNX and from Relay."""
    prepare_tvm_threads(max(threads))
    console = Console()
    options = {"rounds": rounds, "min_time_s": min_time}
    rows: dict[int, list[Row]] = {count: [] for count in threads}
    for name in models:
        console.print(f"{name} ...")
        for count, row in bench_model(name, threads, target, options).items():
            rows[count].append(row)
    machine = describe_machine()
    parts = [section(made, count) for count, made in rows.items()]
    console.print("\n\n".join(parts), markup=False, soft_wrap=True)
    if write:
        results.write_section("relay", "\n\n".join([_head(machine), *parts]))
    if not all(row.good for made in rows.values() for row in made):
        sys.exit(1)


if __name__ == "__main__":
    main()
