"""`tvm-ext logs replay`: how many records of Ansor's logs become schedules of TensorIR."""

from __future__ import annotations

import click

from tvm_ext.cli.logs_progress import log_progress
from tvm_ext.transfer.log_files import log_paths, read_log


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--tasks", multiple=True, type=click.Path(), metavar="TASKS.json",
              help="Compute DAGs of the hashes in FILE; may be given several times.")  # fmt: skip
@click.option("--failures", is_flag=True, help="Name every record that can't be replayed.")
def replay(files: tuple[str, ...], tasks: tuple[str, ...], failures: bool) -> None:
    """Count how many measured records of each FILE become a schedule, and why the others don't.

    Nothing is compiled. A line "3 x CA: ..." counts records whose step of this kind fails for this
    reason; without a kind the compute DAG is missing or can't be read.

    A log names its tasks by hashes, so their compute DAGs must come from elsewhere: TASKS.json is
    a list of objects with workload_key (as in the log), dag (what Ansor prints of the DAG) and, if
    it is known, flops (Ansor's count of operations). Workloads of TVM's tutorials, which have
    names, need none.

    \b
    Examples:
      tvm-ext logs replay resnet50.json --tasks resnet50.tasks.json
      tvm-ext logs replay matmul.json --failures
    """
    from tvm_ext.transfer.ansor import DagLibrary, replay_report

    library = DagLibrary.load(*tasks)
    with log_progress() as progress:
        entries = (entry for path in log_paths(files) for entry in read_log(path, progress))
        reports = replay_report(entries, library.find)
    for report in reports:
        click.echo(str(report))
        if failures:
            for failure in report.failures:
                click.echo(f"  {failure}")
