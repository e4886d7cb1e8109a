"""Make a file of ``tuning_logs/ansor/`` from a log of Ansor's and its tasks.

Run ``python -m tvm_ext.tuning_logs.make_ansor_records LOG --tasks TASKS.json -o OUT.jsonl.gz ...``.
`tvm_ext.transfer.ansor.shipped` describes the file. The same log gives the same bytes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from pathlib import Path
from typing import Any

import click

from tvm_ext.cli.errors import UserError
from tvm_ext.errors import TvmExtError
from tvm_ext.files import replacing
from tvm_ext.transfer import Record, Workload, read_log
from tvm_ext.transfer.ansor.shipped import SCHEMA_VERSION
from tvm_ext.transfer.ansor_workload import read_workload


def best_of_tasks(
    log: Iterable[Any], tasks: Iterable[Mapping[str, Any]], top: int
) -> Iterator[tuple[Mapping[str, Any], list[Record]]]:
    """Each task that has measured CPU records, and the fastest of them, fastest first.

    Parameters
    ----------
    log : iterable of Record or Skipped
    tasks : iterable of mappings
        With ``workload_key``.
    top : int
    """
    by_workload: dict[Workload, list[Record]] = {}
    for entry in log:
        if isinstance(entry, Record) and entry.valid and entry.device == "cpu":
            by_workload.setdefault(entry.workload, []).append(entry)
    for task in tasks:
        records = by_workload.get(read_workload(task["workload_key"]), [])
        # The search can measure a schedule twice.
        fastest: dict[Any, Record] = {}
        for record in sorted(records, key=lambda record: record.median):
            fastest.setdefault(record.steps, record)
        if fastest:
            yield task, nsmallest(top, fastest.values(), key=lambda record: record.median)


def lines_of(
    header: Mapping[str, Any], kept: Iterable[tuple[Mapping[str, Any], list[Record]]]
) -> Iterator[str]:
    """The lines of the file."""
    yield _line({"schema": SCHEMA_VERSION, **header})
    for task, records in kept:
        yield _line(
            {
                "workload_key": task["workload_key"],
                "operators": task["desc"],
                "weight": task["weight"],
                "flops": task["flops"],
                "dag": task["dag"],
            }
        )
        for record in records:
            yield _line(
                {
                    "line": record.source.line,
                    "version": record.version,
                    "steps": record.steps,
                    "seconds": record.seconds,
                }
            )


def _line(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":")) + "\n"


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tasks", required=True, type=click.Path(exists=True, path_type=Path),
              help="JSON: model, target and tasks, each with workload_key, desc, weight, flops, "
              "dag.")  # fmt: skip
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path))
@click.option("--tuner", required=True, help="Such as 'Ansor, TVM 0.16'.")
@click.option("--machine", required=True, help="What the log was measured on.")
@click.option("--threads", required=True, type=click.IntRange(min=1),
              help="That each kernel was measured with.")  # fmt: skip
@click.option("--top", default=3, show_default=True, type=click.IntRange(min=1),
              help="Records of a task.")  # fmt: skip
def main(
    log: Path, tasks: Path, output: Path, tuner: str, machine: str, threads: int, top: int
) -> None:
    """Write the best measured CPU records of every task of LOG."""
    described = json.loads(tasks.read_text("utf-8"))
    header = {
        "network": described["model"],
        "target": described["target"],
        "tuner": tuner,
        "machine": machine,
        "threads": threads,
        "log": log.name,
    }
    try:
        kept = list(best_of_tasks(read_log(log), described["tasks"], top))
        text = "".join(lines_of(header, kept))
        with replacing(output) as stream:
            stream.write(gzip.compress(text.encode(), mtime=0))
    except TvmExtError as error:
        raise UserError(str(error)) from error
    click.echo(f"{output}: {sum(len(records) for _, records in kept)} records, {len(kept)} tasks")


if __name__ == "__main__":
    main()
