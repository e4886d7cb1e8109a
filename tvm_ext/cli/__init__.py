"""The `tvm-ext` command: what the library does with models, as commands."""

from __future__ import annotations

import click

import tvm_ext
from tvm_ext.cli import (
    bench,
    build,
    classes,
    convert,
    info,
    logs,
    plan,
    profile,
    prune,
    run,
    simulate,
    tune,
)
from tvm_ext.cli.errors import Group


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tvm_ext.__version__, prog_name="tvm-ext")
def main() -> None:
    """Turn real models into fast CPU code.

    \b
    Examples:
      tvm-ext build model.onnx -o model.tvmx
      tvm-ext bench model.tvmx --against onnxruntime
      tvm-ext plan model.onnx -o plan.yaml
      tvm-ext tune model.onnx -o plan.yaml --budget 60
    """


for _command in (
    build.build, plan.plan, tune.tune, bench.bench, profile.profile, run.run, info.info,
    classes.classes, logs.logs, convert.convert, prune.prune, simulate.simulate,
):  # fmt: skip
    main.add_command(_command)
