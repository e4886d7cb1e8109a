"""Ansor's records replayed on this machine: how many, how fast, and against our own kernels.

Run ``python -m benchmarks.bench_replay [--records FILE]... [--first N] [--write]``. Each task runs
with as many threads as its log was measured with.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks import results
from benchmarks.machine import describe_machine
from benchmarks.tvm_threads import prepare_tvm_threads

if TYPE_CHECKING:
    from benchmarks.replay_row import Row

HEADER = (
    "task", "threads", "right", "log's best, ms", "best replay, ms", "variant", "to the log",
    "our kernel, ms", "to our kernel", "rank correlation",
)  # fmt: skip


def cells(row: Row) -> list[str]:
    """One line under `HEADER`."""
    own = "" if row.own is None else f"{row.own[0]} {row.own[1] * 1e3:.3f}"
    return [
        f"{row.network} {row.operators}", str(row.threads), f"{row.right} of {row.tried}",
        f"{row.log_s * 1e3:.3f}", _number(row.best_s * 1e3, 3), row.best,
        _number(row.best_s / row.log_s), own, _number(_to_own(row)), _number(row.rank),
    ]  # fmt: skip


def section(rows: Sequence[Row], origins: Sequence[str], machine: dict[str, Any]) -> str:
    """Return the section of RESULTS.md; `origins` says where the records come from."""
    right, tried = sum(row.right for row in rows), sum(row.tried for row in rows)
    parts = [
        "## Ansor's records replayed",
        f"`python -m benchmarks.bench_replay` on {machine['cpu']}, {', '.join(machine['isa'])}. "
        f"The records: {'; '.join(origins)}. **The log's times are of another machine** and of "
        "the code that Ansor's TVM generated there; the ratio to them says little where the two "
        "machines differ. Our kernel is the planner's first choice for the same convolution, "
        "timed on this machine without the bias, addition or ReLU that the task has in it. Every "
        "record is replayed as it is; where its vector loop has one step, with a wider one; where "
        "it fills only part of a register, with a full one; each with LLVM's loop vectoriser on "
        "and off. All results are checked against numpy in "
        "float64; the 3 fastest are timed again, the median of 9 repetitions of 20 ms. The rank "
        "correlation (Spearman's) is that of the records as they are with the log.",
        results.markdown_table(HEADER, [cells(row) for row in rows]),
        f"Replayed and right: {right} of {tried} records ({right / tried:.1%}). "
        + _medians(rows),
    ]  # fmt: skip
    if failures := [f"- {row.operators}, line {f}" for row in rows for f in row.failures]:
        parts.append("\n".join(["Not right, by line:", "", *failures]))
    return "\n\n".join(parts)


def _medians(rows: Sequence[Row]) -> str:
    """A sentence for each ratio: the median, and the largest."""
    parts = []
    for name, values in (
        ("Time by the log's best", [row.best_s / row.log_s for row in rows]),
        ("Time by our kernel's", [_to_own(row) for row in rows]),
    ):
        known = [value for value in values if not np.isnan(value)]
        if known:
            parts.append(
                f"{name}: median {np.median(known):.2f}, least {min(known):.2f}, most "
                f"{max(known):.2f} ({len(known)} tasks)."
            )
    ranks = [row.rank for row in rows if not np.isnan(row.rank)]
    parts.append(
        f"Rank correlation: median {np.median(ranks):.2f} ({len(ranks)} tasks)."
        if ranks else "No task has enough records for a rank correlation."
    )  # fmt: skip
    return " ".join(parts)


def _to_own(row: Row) -> float:
    return float("nan") if row.own is None else row.best_s / row.own[1]


def _number(value: float, digits: int = 2) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


@click.command()
@click.option(
    "--records", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="Made by tvm_ext.tuning_logs.make_ansor_records; default: those shipped.",
)  # fmt: skip
@click.option("--first", type=click.IntRange(min=1), help="Only so many tasks.")
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(records: tuple[Path, ...], first: int | None, write: bool) -> None:
    """Replay, check and time Ansor's records."""
    machine = describe_machine()
    prepare_tvm_threads(int(machine["logical_cpus"] or 1))
    from benchmarks.replay_row import measure
    from tvm_ext.target import resolve
    from tvm_ext.transfer.ansor import shipped_records
    from tvm_ext.transfer.ansor.shipped import read_shipped

    console = Console()
    tasks = [t for path in records for t in read_shipped(path)] if records else shipped_records()
    tasks = tasks[:first]
    target = resolve()
    rows = [measure(task, target) for task in track(tasks, "tasks", console=console)]
    origins = {
        f"{o.network} by {o.tuner}, {o.machine}, {o.threads} threads" if o.threads > 1
        else f"{o.network} by {o.tuner}, {o.machine}, 1 thread"
        for o in (task.origin for task in tasks)
    }  # fmt: skip
    body = section(rows, sorted(origins), machine)
    console.print(body, markup=False)
    if write:
        results.write_section("replay", body)


if __name__ == "__main__":
    main()
