"""Whole models against ONNX Runtime and OpenVINO.

Run ``python -m benchmarks.bench_models [--models NAME]... [--threads N]... [--target native]
[--write]``. The exit status is 1 when a model fails or its output is off.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import harness, results, zoo
from benchmarks.accuracy import max_relative_error
from benchmarks.build_cost import build_cost
from benchmarks.engines import onnxruntime_engine, openvino_engine
from benchmarks.machine import describe_machine
from benchmarks.timing_options import timing_options
from benchmarks.tvm_threads import prepare_tvm_threads, set_tvm_threads

OURS, ORT, OPENVINO = "tvm_ext", "ONNX Runtime", "OpenVINO"
PEERS = (ORT, OPENVINO)
TOLERANCE = 1e-3
"""Largest relative error against ONNX Runtime that counts as right."""

HEADER = (
    "model",
    *(f"{engine}, ms" for engine in (OURS, *PEERS)),
    "ratio to best peer",
    f"error of {OURS}",
    f"error of {OPENVINO}",
    "build and first run, s",
)


@dataclass(frozen=True)
class Row:
    """One model at one number of threads; `failure` says why the rest is missing."""

    model: str
    times: harness.Result | None = None
    error: float = float("nan")
    peer_error: float = float("nan")
    build_s: float = float("nan")
    failure: str = ""

    @property
    def ratio(self) -> float:
        """Our time over that of the peer whose median is lower; below 1 is faster."""
        assert self.times is not None
        best = min(PEERS, key=self.times.median)
        return self.times.ratio(OURS, best)

    @property
    def good(self) -> bool:
        """Whether the model ran and its output is within `TOLERANCE`."""
        return not self.failure and self.error <= TOLERANCE

    def cells(self) -> list[str]:
        """Return the row of the table, under `HEADER`."""
        if self.times is None:
            return [self.model, f"failed: {self.failure}", *[""] * (len(HEADER) - 2)]
        spans = [
            f"{1e3 * self.times.median(e):.2f} "
            f"({1e3 * self.times.p10(e):.2f}-{1e3 * self.times.p90(e):.2f})"
            for e in (OURS, *PEERS)
        ]
        wrong = "" if self.good else " WRONG"
        return [
            self.model,
            *spans,
            f"{self.ratio:.3f}",
            f"{self.error:.1e}{wrong}",
            f"{self.peer_error:.1e}",
            f"{self.build_s:.1f}",
        ]


def bench_model(
    name: str, threads: Sequence[int], target: str, options: dict[str, Any]
) -> dict[int, Row]:
    """Build one model and time it at each number of threads.

    Parameters
    ----------
    name : str
        A model of the zoo.
    threads : Sequence[int]
        Numbers of threads.
    target : str
        What `tvm_ext.build` takes.
    options : dict[str, Any]
        For `harness.compare`.

    Returns
    -------
    dict[int, Row]
        By number of threads. A failure anywhere becomes the rows' `failure`: the other models of
        a run are still worth having.
    """
    rows: dict[int, Row] = {}
    try:
        import tvm_ext

        path = zoo.path(name)
        inputs = zoo.sample_inputs(name)
        build_s, _ = build_cost(path, target)
        executable = tvm_ext.build(path, target)
        for count in threads:
            set_tvm_threads(count)
            engines = {
                OURS: lambda: executable(inputs),
                ORT: onnxruntime_engine(path, inputs, count),
                OPENVINO: openvino_engine(path, inputs, count),
            }
            expected = engines[ORT]()
            error = max_relative_error(engines[OURS](), expected)
            peer_error = max_relative_error(engines[OPENVINO](), expected)
            times = harness.compare(engines, **options)
            rows[count] = Row(name, times, error, peer_error, build_s)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        rows.update({count: Row(name, failure=reason) for count in threads if count not in rows})
    return rows


def summary(rows: Sequence[Row]) -> str:
    """Return one sentence: the geometric mean of the ratios, and over how many models."""
    good = [row.ratio for row in rows if row.good]
    if not good:
        return f"None of {len(rows)} models ran with right outputs."
    mean = harness.geometric_mean(good)
    return (
        f"Geometric mean of the ratio to the best peer: {mean:.3f} "
        f"over {len(good)} of {len(rows)} models (below 1: {OURS} is faster)."
    )


def section(rows: Sequence[Row], threads: int, target: str, machine: dict[str, Any]) -> str:
    """Return the section of RESULTS.md for one number of threads."""
    models = [row.model for row in rows]
    chosen = "" if models == list(zoo.NAMES) else f" --models {' '.join(models)}"
    title = f"Whole models, {threads} thread{'s' if threads > 1 else ''}"
    if target != "native":
        title += f", {target}"
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items())
    return "\n\n".join(
        (
            f"## {title}",
            f"`python -m benchmarks.bench_models --threads {threads} --target {target}{chosen}` on "
            f"{machine['cpu']}, {machine['logical_cpus']} logical processors, "
            f"{', '.join(machine['isa'])}; Python {machine['python']}, {versions}.",
            "Latency at batch 1, float32: median (10th to 90th percentile) of interleaved rounds. "
            "Ratio: median over the rounds of our time by that of the faster peer. Error: "
            "max|a - b| / max|b| against ONNX Runtime.",
            results.markdown_table(HEADER, [row.cells() for row in rows]),
            summary(rows),
        )
    )


def _show(console: Console, rows: Sequence[Row], threads: int) -> None:
    table = Table(title=f"{threads} thread(s)")
    for i, title in enumerate(HEADER):
        table.add_column(title, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row.cells(), style=None if row.good else "red")
    console.print(table)
    console.print(summary(rows))


def _spread(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """Repeat the names of multiple-valued options: ``--a 1 2`` becomes ``--a 1 --a 2``."""
    spread: list[str] = []
    current = ""
    for argument in arguments:
        if argument.startswith("-"):
            current = argument if argument in options else ""
            if current:
                continue
        spread += [current, argument] if current else [argument]
    return spread


@click.command()
@click.option("--models", multiple=True, type=click.Choice(zoo.NAMES), help="Default: all.")
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
    """Time models of the zoo in tvm_ext, ONNX Runtime and OpenVINO."""
    prepare_tvm_threads(max(threads))
    console = Console()
    options = {"rounds": rounds, "min_time_s": min_time}
    rows: dict[int, list[Row]] = {count: [] for count in threads}
    for name in models or zoo.NAMES:
        console.print(f"{name} ...")
        for count, row in bench_model(name, threads, target, options).items():
            rows[count].append(row)
    machine = describe_machine()
    for count in threads:
        _show(console, rows[count], count)
        if write:
            suffix = "" if target == "native" else f"-{target}"
            body = section(rows[count], count, target, machine)
            results.write_section(f"models-{count}-threads{suffix}", body)
    if not all(row.good for made in rows.values() for row in made):
        sys.exit(1)


if __name__ == "__main__":
    main(_spread(sys.argv[1:], ("--models", "--threads")))
