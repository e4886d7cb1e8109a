"""Transfer tuning against MetaSchedule's search: speed-up, its share, and the time that it takes.

Run ``python -m benchmarks.bench_transfer [--pairs MODEL:DONOR,...] [--search S] [--transfer S]
[--write]``. Rows are kept in transfer.json, so that a table of many hours may take several runs, on
one machine or more. Gibson and Cano (PACT 2022), tables 6.3 and 6.4 of the thesis.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from benchmarks import results
from benchmarks.harness import geometric_mean
from benchmarks.machine import describe_machine
from benchmarks.transfer_rows import Row, conditions, keep_row, machines, read_rows
from benchmarks.tvm_threads import prepare_tvm_threads

# A model and the donor of its schedules, as in table 6.2 where there are both.
PAIRS = (
    ("resnet18", "resnet50"), ("resnet50", "resnet18"), ("bvlc_alexnet", "vgg19"),
    ("vgg19", "resnet50"), ("mobilenet_v2", "efficientnet_lite0"),
    ("efficientnet_lite0", "mobilenet_v2"), ("inception_v1", "resnet50"),
    ("minilm", "minilm_256"), ("minilm_256", "minilm"),
)  # fmt: skip
STARTS = ("TVM's default", "our plan")
ROWS = results.RESULTS.with_name("transfer.json")
PLOT = results.RESULTS.with_name("transfer.png")
HEADER = (
    "model", "donor", "start, ms", "search, ms", "transfer, ms", "unmeasured, ms", "search, x",
    "transfer, x", "unmeasured, x", "share", "share unmeasured", "search, s", "transfer, s",
    "of the search's time", "search's time to match", "machine",
)  # fmt: skip


def cells(row: Row, machine: str) -> list[str]:
    """One line under `HEADER`; `machine` is the letter of the row's."""
    match = row.time_to_match()
    return [
        row.model, row.donor,
        *(f"{row.ms[key]:.2f}" for key in ("start", "search", "transfer", "unmeasured")),
        *(f"{row.ratios[key]:.2f}" for key in ("search", "transfer", "unmeasured")),
        f"{row.share('transfer'):.2f}", f"{row.share('unmeasured'):.2f}",
        f"{row.ways['search'].seconds:.0f} ({row.ways['search'].candidates})",
        f"{row.ways['transfer'].seconds:.0f} ({row.ways['transfer'].candidates})",
        f"{row.time_share():.1%}", "never" if np.isinf(match) else f"{match:.1f}x",
        machine,
    ]  # fmt: skip


def section(rows: Sequence[Row]) -> str:
    """Return the section of RESULTS.md."""
    letters = machines(rows)
    parts = [
        "## Transfer tuning",
        "`python -m benchmarks.bench_transfer`. The search is MetaSchedule's, on our runner; "
        "transfer takes the donor's records, which were searched for as long; unmeasured is "
        "`budget_s=0`. Seconds are wall time with all builds and the comparison of whole models, "
        "beside those in which candidates are measured; the number of candidates stands behind. x "
        "is the speed-up over the start, share is that of the search's speed-up. The last but one "
        "column is how much of transfer's time the search needs until its estimate of the model is "
        "as low as transfer's; never means: not within its budget. Rounds of all versions "
        "alternate; outputs agree with the start's within 1e-3 of the largest magnitude. Machines, "
        "and for how long each way measures there: "
        + "; ".join(f"**{letter}** {text}" for text, letter in letters.items())
        + ".",
    ]
    for start in STARTS:
        own = [row for row in rows if row.start == start]
        if not own:
            continue
        parts += [
            f"From {start}" + (", loops without a schedule:" if start == STARTS[0] else ":"),
            results.markdown_table(HEADER, [cells(row, letters[conditions(row)]) for row in own]),
            _summary(own),
        ]
    if PLOT.exists():
        parts.append(f"![Estimated latency over time]({PLOT.name})")
    return "\n\n".join(parts)


def _summary(rows: Sequence[Row]) -> str:
    shares = [row.share("transfer") for row in rows]
    unmeasured = [row.share("unmeasured") for row in rows]
    slower = [row.model for row in rows if row.ratios["transfer"] < 0.98]
    return (
        f"Share of the search's speed-up: geometric mean {geometric_mean(shares):.2f}, least "
        f"{min(shares):.2f}; unmeasured {geometric_mean(unmeasured):.2f}, least "
        f"{min(unmeasured):.2f}; time {geometric_mean([row.time_share() for row in rows]):.1%} of "
        f"the search's. Slower than the start: {', '.join(slower) or 'none'}."
    )


def plot(rows: Sequence[Row]) -> bytes:
    """The estimated latency over the time spent, search and transfer, a panel a model."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    from tvm_ext.plots import png

    own = [row for row in rows if row.start == STARTS[0]]
    columns = min(3, len(own))
    lines = -(-len(own) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.0 * lines), layout="constrained")
    for row, axes in zip(own, figure.subplots(lines, columns, squeeze=False).flat, strict=False):
        for way, colour in (("search", "tab:gray"), ("transfer", "tab:blue")):
            seconds, ms = zip(*row.ways[way].curve, strict=True)
            axes.step(seconds, ms, where="post", label=way, color=colour)
        axes.set(xscale="log", yscale="log", title=f"{row.model} from {row.donor}")
        axes.set(xlabel="time spent, s", ylabel="estimated latency, ms")
        for axis in (axes.xaxis, axes.yaxis):
            # Labels at 1, 2 and 5 of each decade: more would overlap within one.
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_formatter(NullFormatter())
        axes.legend()
    for axes in figure.axes[len(own) :]:
        axes.remove()
    return png(figure)


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = [tuple(item.split(":")) for item in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise click.BadParameter(f"{text!r}; allowed: MODEL:DONOR,MODEL:DONOR,...")
    return [(a, b) for a, b in pairs]


@click.command()
@click.option("--pairs", help="MODEL:DONOR,... of the zoo.")
@click.option("--search", "search_s", default=600.0, show_default=True, help="Seconds.")
@click.option("--transfer", "transfer_s", default=20.0, show_default=True, help="Seconds.")
@click.option(
    "--work-dir", type=click.Path(path_type=Path),
    help="Keeps the searches' records; a folder that has some goes on from there.",
)  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), help="All of the machine's without it.")
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(
    pairs: str | None, search_s: float, transfer_s: float, work_dir: Path | None,
    threads: int | None, write: bool,
) -> None:  # fmt: skip
    """Tune models by transfer and by search, and compare."""
    machine = describe_machine()
    threads = threads or int(machine["logical_cpus"] or 1)
    prepare_tvm_threads(threads)
    from benchmarks.transfer_row import Bench, Budget
    from tvm_ext.target import resolve

    console = Console()
    rows = read_rows(ROWS) if write else []
    plural = "s" if threads > 1 else ""
    ran_on = f"{machine['cpu']}, {', '.join(machine['isa'])}, {threads} thread{plural}"
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(work_dir or Path(temporary), resolve(), Budget(search_s, transfer_s), ran_on)
        for model, donor in _pairs(pairs) if pairs else PAIRS:
            for start in STARTS:
                row = bench.row(model, donor, start)
                console.print(f"{start}: {', '.join(cells(row, ''))}", markup=False)
                if write:
                    # A run of hours that is stopped leaves what it has.
                    rows = keep_row(row, ROWS)
                    PLOT.write_bytes(plot(rows))
                    results.write_section("transfer", section(rows))
                else:
                    rows.append(row)
    console.print(section(rows), markup=False)


if __name__ == "__main__":
    main()
