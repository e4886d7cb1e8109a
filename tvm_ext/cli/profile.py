"""`tvm-ext profile`."""

from __future__ import annotations

import click

from tvm_ext.cli.models import open_model
from tvm_ext.cli.options import (
    Shapes,
    build_options,
    precision_option,
    threads_option,
    tuning_option,
    use_threads,
)


@click.command()
@click.argument("model_or_file")
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--html", help="Also write a report page there.")
@tuning_option
@precision_option
@threads_option
@build_options
def profile(
    model_or_file: str,
    runs: int,
    html: str | None,
    tuning: str,
    precision: str,
    count: int | None,
    target: str,
    shapes: Shapes,
) -> None:
    """Show where the time of MODEL_OR_FILE goes, layer by layer.

    \b
    Examples:
      tvm-ext profile model.tvmx
      tvm-ext profile model.onnx --threads 1 --html report.html
    """
    use_threads(count)
    exe = open_model(model_or_file, target, shapes, tuning, precision)
    click.echo(str(exe.profile(runs=runs)))
    if html is not None:
        exe.report(html)
