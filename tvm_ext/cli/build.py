"""`tvm-ext build`."""

from __future__ import annotations

import click

from tvm_ext.cli.models import build_model
from tvm_ext.cli.options import Shapes, build_options, fusion_option


@click.command()
@click.argument("model")
@click.option("-o", "--output", required=True, help="The file to write, such as model.tvmx.")
@click.option("--plan", "plan_file", help="A plan to follow, as `tvm-ext plan` writes it.")
@fusion_option
@build_options
def build(
    model: str,
    output: str,
    plan_file: str | None,
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
      tvm-ext build model.onnx -o model.tvmx --fusion-database fusion.jsonl
    """
    exe = build_model(model, target, shapes, plan_file, fusion_database)
    path = exe.save(output)
    click.echo(
        f"{path}: {len(exe.plan)} layers for {exe.target.name}, {path.stat().st_size / 1e6:.1f} MB"
    )
