"""Our fusion against TVM's FuseOps: kernels, bytes between them, and latency.

Run ``python -m benchmarks.bench_fusion [--models NAME]... [--threads N]...
[--counts [--target CPU]] [--write]``.
The exit status is 1 when a model fails or the outputs differ.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from benchmarks import harness, results, zoo
from benchmarks.fusion_row import (
    COUNTS_HEADER,
    FUSE_OPS,
    OURS,
    TIMES_HEADER,
    Row,
    bench_model,
)
from benchmarks.machine import describe_machine
from benchmarks.timing_options import timing_options
from benchmarks.tvm_threads import prepare_tvm_threads

MODELS = (*zoo.NAMES, *zoo.FUSION_MODELS)


def counts_table(rows: Sequence[Row]) -> str:
    """Return the table of kernels and bytes, with the geometric means of the ratios."""
    counted = [(row.model, row.counts) for row in rows if row.counts is not None]
    if not counted:
        return "No model could be fused."
    means = [
        f"{harness.geometric_mean(column):.2f}"
        for column in zip(*(counts.ratios() for _, counts in counted), strict=True)
    ]
    blank = [""] * 3
    last = ["geometric mean", "", "", *blank, *means[:2], *blank, *means[2:]]
    body = [[model, *counts.cells()] for model, counts in counted]
    return results.markdown_table(COUNTS_HEADER, [*body, last])


def times_table(rows: Sequence[Row], threads: int) -> str:
    """Return the table of latencies, and one sentence with the geometric mean."""
    good = [row.times[threads].ratio(OURS, FUSE_OPS) for row in rows if row.good]
    mean = f"{harness.geometric_mean(good):.3f}" if good else "none"
    return (
        results.markdown_table(TIMES_HEADER, [row.cells(threads) for row in rows])
        + f"\n\nGeometric mean of the ratio: {mean} over {len(good)} of {len(rows)} models "
        f"(below 1: {OURS} is faster)."
    )


def section(
    rows: Sequence[Row], threads: Sequence[int], machine: dict[str, Any], target: str = "native"
) -> str:
    """Return the section of RESULTS.md."""
    chosen = "".join(f" --models {r.model}" for r in rows) if len(rows) < len(MODELS) else ""
    chosen += "" if threads else f" --counts --target {target}"
    parts = [
        f"## Fusion{'' if threads else f', kernels for {target}'}",
        f"`python -m benchmarks.bench_fusion{chosen}` on {machine['cpu']}, "
        f"{', '.join(machine['isa'])}. FuseOps is TVM's fusion, after TVM's own decomposition of "
        "batch norms and with constants folded, on the model as loaded and after our rewriting. "
        "Kernels are calls of compiled code. FuseOps': every group but those of reshapes alone, "
        "which become views. Ours: every call of the compiled program, changes of layout and "
        "copies included; reshapes are views, so are slices of whole runs, and concatenations "
        "computed in place have none. "
        "MB between: what one kernel writes and another reads, each once, without inputs, "
        "weights and outputs. What a kernel keeps in scratch of its own isn't counted. "
        "Ratios are ours to FuseOps'.",
        counts_table(rows),
    ]
    if not threads:
        return "\n\n".join(parts)
    parts.append(
        "Latency: each model is built twice, with FuseOps' groups (cut where no kernel of ours "
        "takes them) and with our fusion, all else equal. Median of interleaved rounds in one "
        "process; the ratio is the median over the rounds. Kernel calls are those of the compiled "
        "model, changes of layout included, concatenations and slices in place not. Difference: "
        "max|a - b| / max|b| of the outputs."
    )
    for count in threads:
        title = f"### {count} thread{'s' if count > 1 else ''}"
        parts += [title, times_table(rows, count)]
    return "\n\n".join(parts)


@click.command()
@click.option("--models", multiple=True, type=click.Choice(MODELS), help="Default: all.")
@click.option("--counts", is_flag=True, help="Compile and time nothing.")
@click.option(
    "--target", default="native", show_default=True,
    help="native, or with --counts an LLVM CPU name.",
)  # fmt: skip
@timing_options
def main(
    models: tuple[str, ...], threads: tuple[int, ...], counts: bool, target: str, rounds: int,
    min_time: float, write: bool,
) -> None:  # fmt: skip
    """Compare our fusion with TVM's FuseOps on models of the zoo."""
    if target != "native" and not counts:
        raise click.UsageError("--target needs --counts: other machines can't be timed")
    prepare_tvm_threads(max(threads))
    timed = () if counts else threads
    console = Console()
    options = {"rounds": rounds, "min_time_s": min_time}
    names = models or MODELS
    rows = []
    with Progress(console=console) as progress:
        task = progress.add_task("", total=len(names))
        for name in names:

            def stage(what: str, name: str = name) -> None:
                progress.update(task, description=f"{name}: {what}")

            rows.append(bench_model(name, timed, options, stage, target))
            progress.advance(task)
    body = section(rows, timed, describe_machine(), target)
    console.print(body, markup=False)
    if write:
        results.write_section(f"fusion-counts-{target}" if counts else "fusion", body)
    if not all(row.good for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
