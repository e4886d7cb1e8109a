"""`tvm-ext tune`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

import tvm_ext
from tvm_ext.cli.models import existing
from tvm_ext.cli.options import Shapes, build_options
from tvm_ext.cli.progress import stderr_bar
from tvm_ext.plan import Plan
from tvm_ext.transfer.tune_donors import load_donors
from tvm_ext.transfer.tune_options import METHODS, TuningOptions, TuningProgress
from tvm_ext.transfer.tuned_record import TunedRecord


@click.command()
@click.argument("model")
@click.option("-o", "--output", required=True, help="The plan to write, as YAML.")
@click.option("--method", default="transfer", show_default=True, type=click.Choice(METHODS),
              help="Where candidates come from: donors, a search, or both.")  # fmt: skip
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Seconds for measuring; 0 measures nothing, and takes what promises a gain.",
)
@click.option("--trials", type=click.IntRange(min=1), help="The most candidates to measure.")
@click.option(
    "--work-dir",
    type=click.Path(file_okay=False),
    help="Keeps the records: a run that ended early goes on where it was.",
)
@click.option(
    "--donors",
    multiple=True,
    metavar="PATH",
    help="Another run's --work-dir, a bank's file, a log of Ansor's, or 'shipped' for the records "
    "of Ansor's that come with tvm-ext; repeatable. Default: the bank.",
)
@click.option(
    "--prescreen",
    default=1.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True, max=1),
    help="Share of the donors' schedules to measure: a model learned from them ranks them.",
)
@click.option("--tracker", metavar="HOST:PORT", help="Measure on the servers of a TVM RPC tracker.")
@click.option("--key", default="", help="The servers' key at the tracker.")
@build_options  # fmt: skip
def tune(
    model: str,
    output: str,
    method: str,
    budget: float | None,
    trials: int | None,
    work_dir: str | None,
    donors: tuple[str, ...],
    prescreen: float,
    tracker: str | None,
    key: str,
    target: str,
    shapes: Shapes,
) -> None:
    """Find faster kernels for MODEL, and write the plan to build it with.

    Every candidate is built, run and checked in a process of its own. A kernel is changed only
    where the whole model is faster with the change.

    \b
    Examples:
      tvm-ext tune model.onnx -o plan.yaml --budget 60
      tvm-ext tune model.onnx -o plan.yaml --method search --trials 500 --work-dir records/
      tvm-ext tune other.onnx -o other.yaml --donors records/ --budget 60
      tvm-ext tune other.onnx -o other.yaml --donors old_log.json --donors shipped --budget 60
      tvm-ext tune model.onnx -o plan.yaml --tracker farm:9190 --key xeon --budget 600
      tvm-ext build other.onnx -o other.tvmx --plan other.yaml
    """
    path = existing(model)
    options = TuningOptions(method=method, prescreen=prescreen, tracker=tracker, key=key)
    records = _read_donors(donors) if donors else None
    with _progress(budget, trials) as progress:
        plan = tvm_ext.tune(
            path, target, method=method, budget_s=budget, trials=trials, work_dir=work_dir,
            donors=records, input_shapes=dict(shapes) or None, progress=progress, options=options,
        )  # fmt: skip
    plan.save(output)
    click.echo(_summary(output, plan))


def _read_donors(names: tuple[str, ...]) -> dict[str, list[TunedRecord]]:
    """The records of donors; says on stderr what one with unused records gives."""
    found = load_donors(names)
    for donor in found:
        if donor.skipped:
            click.echo(str(donor), err=True)
    return {donor.name: list(donor.records) for donor in found}


def _summary(output: str, plan: Plan) -> str:
    changed = sum(layer.source in ("transfer", "tuned") for layer in plan)
    return (
        f"{output}: {changed} of {len(plan)} layers changed, estimate {plan.estimate_us:.0f} us "
        f"for {plan.target}"
    )


@contextmanager
def _progress(
    budget: float | None, trials: int | None
) -> Iterator[Callable[[TuningProgress], None]]:
    """A bar on stderr: trials or seconds, whichever limit is nearer, and the model's latency."""
    with stderr_bar() as bar:
        task = bar.add_task("prepare", total=1.0 if budget or trials else None)

        def tell(at: TuningProgress) -> None:
            done = max(
                at.elapsed_s / budget if budget else 0, at.measured / trials if trials else 0
            )
            bar.update(
                task, completed=done if budget or trials else None,
                description=f"{at.latency_us:.0f} us estimated; {at.measured} measured, "
                f"{at.failed} failed, {at.screened} screened out; {at.layer or at.note}",
            )  # fmt: skip

        yield tell
