"""Pruned models against our dense build, ONNX Runtime and DeepSparse.

Run ``python -m benchmarks.bench_sparse [--models NAME]... [--threads N]... [--write]``. The exit
status is 1 when a model fails or its output is off. DeepSparse is timed where an interpreter has it
(see `benchmarks.deepsparse_engine`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from benchmarks import harness, results
from benchmarks.machine import describe_machine
from benchmarks.sparse_row import DEEPSPARSE, HEADER, ORT, Case, Row, bench_case
from benchmarks.timing_options import timing_options
from benchmarks.tvm_threads import prepare_tvm_threads

CASES = (
    Case("resnet50", "block16", 0.25),
    Case("resnet50", "block16", 0.125),
    Case("vgg19", "block16", 0.25),
    Case("vgg19", "block16", 0.125),
    Case("resnet50", "unstructured", 0.1),
    Case("seq2seq_lstm", "unstructured", 0.15),
    Case("vgg_block", "unstructured", 0.01),
    Case("resnet_block", "unstructured", 0.161),
)


def summary(rows: Sequence[Row]) -> str:
    """Return one sentence: the geometric mean of the share of the expected speed-up."""
    good = [row.expected_share for row in rows if row.good]
    if not good:
        return f"None of {len(rows)} models ran with right outputs."
    mean = harness.geometric_mean(good)
    return (
        f"Geometric mean of the share of the expected speed-up: {mean:.2f} over {len(good)} of "
        f"{len(rows)} models."
    )


def section(rows: Sequence[Row], threads: int, machine: dict[str, Any]) -> str:
    """Return the section of RESULTS.md for one number of threads."""
    models = list(dict.fromkeys(row.case.model for row in rows))
    chosen = "" if len(rows) == len(CASES) else "".join(f" --models {name}" for name in models)
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items())
    peer = next((f", {DEEPSPARSE} {r.deepsparse}" for r in rows if _timed(r)), "")
    return "\n\n".join(
        (
            f"## Pruned models, {threads} thread{'s' if threads > 1 else ''}",
            f"`python -m benchmarks.bench_sparse --threads {threads}{chosen}` on "
            f"{machine['cpu']}, {machine['logical_cpus']} logical processors, "
            f"{', '.join(machine['isa'])}; Python {machine['python']}, {versions}{peer}.",
            "Latency at batch 1, float32: median (10th to 90th percentile) of interleaved rounds; "
            "ratios are medians over the rounds, above 1 the pruned build is faster. By magnitude, "
            "without training: block16 prunes columns of 16 filters together, unstructured single "
            "weights; each layer to the same density, all convolutions but the first and all "
            "dense layers but the last, as `tvm_ext.prune` does by default (in the two blocks all, "
            "in the LSTM all gates). Our dense build is of the model before pruning. "
            f"{ORT} and {DEEPSPARSE} run the pruned file. {DEEPSPARSE} is in a process of its own "
            "and times itself, its rounds interleaved with the others'. Share of expected: "
            f"({ORT}'s time x share of MACs that remain) / our time. Weights: constants of the "
            "pruned build, of the dense one. Error: max|a - b| / max|b| against ONNX Runtime.",
            results.markdown_table(HEADER, [row.cells() for row in rows]),
            summary(rows),
        )
    )


def _timed(row: Row) -> bool:
    return row.times is not None and DEEPSPARSE in row.times.seconds


@click.command()
@click.option(
    "--models",
    multiple=True,
    type=click.Choice(list(dict.fromkeys(case.model for case in CASES))),
    help="Default: all.",
)
@timing_options
def main(
    models: tuple[str, ...], threads: tuple[int, ...], rounds: int, min_time: float, write: bool
) -> None:
    """Time pruned models in tvm_ext, ONNX Runtime and DeepSparse."""
    prepare_tvm_threads(max(threads))
    console = Console()
    options = {"rounds": rounds, "min_time_s": min_time}
    cases = [case for case in CASES if not models or case.model in models]
    rows: dict[int, list[Row]] = {count: [] for count in threads}
    with Progress(console=console) as progress:
        task = progress.add_task("", total=len(cases))
        for case in cases:
            progress.update(task, description=f"{case.model} {case.scheme} {case.density:g}")
            for count, row in bench_case(case, threads, options).items():
                rows[count].append(row)
            progress.advance(task)
    machine = describe_machine()
    for count in threads:
        body = section(rows[count], count, machine)
        console.print(body, markup=False)
        if write:
            results.write_section(f"sparse-models-{count}-threads", body)
    if not all(row.good for made in rows.values() for row in made):
        sys.exit(1)


if __name__ == "__main__":
    main()
