"""`tvm-ext plan`."""

from __future__ import annotations

import click

import tvm_ext
from tvm_ext.cli.models import existing
from tvm_ext.cli.options import (
    Shapes,
    build_options,
    fusion_option,
    precision_option,
    tuning_option,
)


@click.command()
@click.argument("model")
@click.option("-o", "--output", help="Also write the plan as YAML.")
@tuning_option
@precision_option
@fusion_option
@build_options
def plan(
    model: str,
    output: str | None,
    tuning: str,
    precision: str,
    fusion_database: str | None,
    target: str,
    shapes: Shapes,
) -> None:
    """Show what would be decided for MODEL, layer by layer.

    \b
    Examples:
      tvm-ext plan model.onnx
      tvm-ext plan model.onnx -o plan.yaml
      tvm-ext plan model.onnx --tuning none
      tvm-ext plan model.onnx --precision high
    """
    made = tvm_ext.plan(
        existing(model), target,
        input_shapes=dict(shapes) or None, fusion_database=fusion_database,
        tuning=tuning, precision=precision,
    )  # fmt: skip
    if output is not None:
        made.save(output)
    click.echo(str(made))
