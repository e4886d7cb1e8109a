"""`tvm-ext build`."""

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
from tvm_ext.cli.progress import build_progress
from tvm_ext.plan import Plan


@click.command()
@click.argument("model")
@click.option("-o", "--output", required=True, help="The file to write, such as model.tvmx.")
@click.option("--plan", "plan_file", help="A plan to follow, as `tvm-ext plan` writes it.")
@tuning_option
@precision_option
@fusion_option
@build_options
def build(
    model: str,
    output: str,
    plan_file: str | None,
    tuning: str,
    precision: str,
    fusion_database: str | None,
    target: str,
    shapes: Shapes,
) -> None:
    """Compile MODEL and save it as one file.

    \b
    Examples:
      tvm-ext build model.onnx -o model.tvmx
      tvm-ext build bert.onnx -o bert.tvmx --input-shape input_ids:1,128
      tvm-ext build model.onnx -o model.tvmx --plan plan.yaml --target core-avx2
      tvm-ext build model.onnx -o model.tvmx --tuning none
      tvm-ext build model.onnx -o model.tvmx --precision high
      tvm-ext build model.onnx -o model.tvmx --fusion-database fusion.jsonl
    """
    chosen = None if plan_file is None else Plan.load(plan_file)
    with build_progress() as progress:
        exe = tvm_ext.build(
            existing(model), target,
            input_shapes=dict(shapes) or None, plan=chosen, fusion_database=fusion_database,
            tuning=tuning, precision=precision, progress=progress,
        )  # fmt: skip
    path = exe.save(output)
    click.echo(
        f"{path}: {len(exe.plan)} layers for {exe.target.name}, {path.stat().st_size / 1e6:.1f} MB"
    )
