"""What building costs: seconds and peak memory of a fresh process for each model.

Run ``python -m benchmarks.bench_build [--write]``.
"""

from __future__ import annotations

import click
from rich.console import Console

from benchmarks import results, zoo
from benchmarks.build_cost import build_cost
from benchmarks.machine import describe_machine

HEADER = ("model", "file, MiB", "build and first run, s", "peak memory, MiB", "3 x file + 1536 MiB")


@click.command()
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(write: bool) -> None:
    """Build every model of the zoo in a process of its own."""
    rows = []
    for name in zoo.NAMES:
        path = zoo.path(name)
        size = path.stat().st_size / 2**20
        seconds, peak = build_cost(path, "native")
        rows.append(
            [name, f"{size:.0f}", f"{seconds:.1f}", f"{peak:.0f}", f"{3 * size + 1536:.0f}"]
        )
    machine = describe_machine()
    body = (
        f"## Building\n\n`python -m benchmarks.bench_build` on {machine['cpu']}, "
        f"{', '.join(machine['isa'])}: loading, planning, compiling and running "
        "once in a fresh process.\n\n" + results.markdown_table(HEADER, rows)
    )
    Console().print(body, markup=False)
    if write:
        results.write_section("build", body)


if __name__ == "__main__":
    main()
