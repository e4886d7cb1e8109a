"""`tvm-ext logs`: what tuning logs hold, and logs made of logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tvm_ext.cli.logs_progress import log_progress
from tvm_ext.cli.logs_replay import replay
from tvm_ext.cli.logs_table import summary_lines
from tvm_ext.transfer import log_tools
from tvm_ext.transfer.log_files import log_paths
from tvm_ext.transfer.log_filter import RecordFilter
from tvm_ext.transfer.log_split import SPLITS
from tvm_ext.transfer.log_summary import Defects, summarize_log
from tvm_ext.transfer.target_device import DEVICES

_files = click.argument("files", nargs=-1, required=True, metavar="FILE...")
_output = click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path),
    help="A file (.gz packs it); for MetaSchedule a new directory.",
)  # fmt: skip


@click.group()
def logs() -> None:
    """Read Ansor's and MetaSchedule's tuning logs.

    FILE is a log of Ansor's JSON records (v0.2 to v0.6), or a MetaSchedule database: its directory
    or its database_tuning_record.json. Both may be packed by gzip; - is the standard input.

    Lines that hold no usable record are skipped, counted, and named by their reason.

    \b
    Examples:
      tvm-ext logs info resnet50.json
      tvm-ext logs best resnet50.json --top 3 -o best.json
      tvm-ext logs merge monday.json tuesday.json.gz -o both.json
      tvm-ext logs filter all.json --device cpu --valid -o cpu.json
      tvm-ext logs split all.json --by target -o targets/
      tvm-ext logs replay resnet50.json --tasks resnet50.tasks.json
    """


@logs.command()
@_files
@click.option("--tasks", default=30, show_default=True, type=click.IntRange(min=0),
              help="Rows of a file's table of tasks.")  # fmt: skip
def info(files: tuple[str, ...], tasks: int) -> None:
    """Show what each FILE holds: records, targets, and the best time of every task.

    \b
    Examples:
      tvm-ext logs info resnet50.json
      tvm-ext logs info work_dir/ --tasks 100
    """
    with log_progress() as progress:
        found = [summarize_log(path, progress) for path in log_paths(files)]
    click.echo("\n\n".join("\n".join(summary_lines(summary, tasks)) for summary in found))


@logs.command()
@_files
@_output
@click.option("--top", default=1, show_default=True, type=click.IntRange(min=1),
              help="Schedules of a workload on a target.")  # fmt: skip
def best(files: tuple[str, ...], output: Path, top: int) -> None:
    """Write the fastest records of every workload on every target.

    \b
    Examples:
      tvm-ext logs best resnet50.json -o best.json
      tvm-ext logs best *.json --top 5 -o best.json.gz
    """
    with log_progress() as progress:
        outcome = log_tools.best_records(files, output, top, progress)
    _report(outcome, output)


@logs.command()
@_files
@_output
def merge(files: tuple[str, ...], output: Path) -> None:
    """Write the records of all FILEs one behind the other, each schedule once.

    Of records of the same workload, target and steps, one that was measured is kept rather than one
    that failed, then the one with more runs, then the one with the lower median.

    \b
    Examples:
      tvm-ext logs merge monday.json tuesday.json -o both.json
    """
    with log_progress() as progress:
        outcome = log_tools.merge_logs(files, output, progress)
    _report(outcome, output)


@logs.command("filter")
@_files
@_output
@click.option("--target", help="Text in the target, such as mcpu=znver4.")
@click.option("--device", type=click.Choice(DEVICES), help="Kind of device.")
@click.option("--workload", help="Text in the workload, as info shows it.")
@click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="Limit of the median.")  # fmt: skip
@click.option("--valid", is_flag=True, help="Leave out records whose measurement failed.")
def filter_(files: tuple[str, ...], output: Path, **conditions: Any) -> None:
    """Write the records that fulfil every condition.

    \b
    Examples:
      tvm-ext logs filter all.json --device cpu --valid -o cpu.json
      tvm-ext logs filter all.json --target mcpu=znver4 --max-seconds 0.01 -o fast.json
    """
    with log_progress() as progress:
        outcome = log_tools.filter_logs(files, output, RecordFilter(**conditions), progress)
    _report(outcome, output)


@logs.command()
@_files
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path),
              help="A new or empty directory.")  # fmt: skip
@click.option("--by", default="target", show_default=True, type=click.Choice(list(SPLITS)))
def split(files: tuple[str, ...], output: Path, by: str) -> None:
    """Write one log a target, or one a workload, into a directory.

    \b
    Examples:
      tvm-ext logs split all.json -o targets/
      tvm-ext logs split all.json --by workload -o workloads/
    """
    with log_progress() as progress:
        outcome = log_tools.split_logs(files, output, by, progress)
    _report(outcome, output)


def _report(outcome: log_tools.Outcome, output: Path) -> None:
    """The result on stdout, what was skipped on stderr."""
    logs_written = f" in {outcome.files} logs" if outcome.files > 1 else ""
    click.echo(f"{output}: {outcome.written} of {outcome.read} records{logs_written}")
    _report_skipped(outcome.skipped)


def _report_skipped(skipped: Defects) -> None:
    for line in skipped.lines():
        click.echo(f"skipped {line}", err=True)


logs.add_command(replay)
