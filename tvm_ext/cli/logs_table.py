"""A summary of a log as text."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from tvm_ext.tables import render
from tvm_ext.transfer.log_summary import LogSummary


def summary_lines(summary: LogSummary, tasks: int) -> Iterator[str]:
    """What a log holds, line by line.

    Parameters
    ----------
    summary : LogSummary
    tasks : int
        Rows of the table of tasks; the others are counted in a last line.
    """
    failed = sum(tally.count for tally in summary.failed.values())
    versions = ", ".join(sorted(summary.versions))
    yield f"{summary.path}: {summary.format} {versions}".rstrip()
    yield f"records: {summary.valid} valid, {failed} failed, {summary.skipped.total} skipped"
    for error, tally in summary.failed.items():
        yield f"  failed {tally.count}: {error} (first: line {tally.first.line})"
    for line in summary.skipped.lines():
        yield f"  skipped {line}"
    yield "targets:"
    for (target, device), count in summary.targets.most_common():
        yield f"  {target} ({device}): {count}"
    yield f"tasks: {len(summary.tasks)}"
    if tasks:
        yield render(_table(summary, tasks))
        if len(summary.tasks) > tasks:
            yield f"and {len(summary.tasks) - tasks} more (--tasks)"


def _table(summary: LogSummary, tasks: int) -> Table:
    """One row a workload and target."""
    several = len(summary.targets) > 1
    table = Table()
    table.add_column("workload", overflow="fold")
    if several:
        table.add_column("target", overflow="fold")
    for name in ("records", "valid", "best ms"):
        table.add_column(name, justify="right")
    for (workload, target), task in list(summary.tasks.items())[:tasks]:
        # Texts of a log may look like rich's markup.
        names = [Text(str(workload)), *([Text(target)] if several else [])]
        best = f"{task.best * 1e3:.4g}" if math.isfinite(task.best) else "-"
        table.add_row(*names, str(task.records), str(task.valid), best)
    return table
