"""`tvm-ext convert`."""

from __future__ import annotations

from pathlib import Path

import click

import tvm_ext
from tvm_ext.cli.formats import FORMATS, checked_suffix, serialized
from tvm_ext.cli.models import existing
from tvm_ext.cli.options import InputShape, Shapes
from tvm_ext.files import replacing


@click.command()
@click.argument("model")
@click.option("-o", "--output", required=True, help="The file to write: .onnx, .json or .py.")
@click.option("--params", type=click.Path(),
              help="Weights of MODEL: a file of relay.save_param_dict, or an .npz.")  # fmt: skip
@click.option(
    "--input-shape", "shapes", multiple=True, type=InputShape(),
    help="Shape of an input that the model leaves open; repeatable.",
)  # fmt: skip
def convert(model: str, output: str, params: str | None, shapes: Shapes) -> None:
    """Write MODEL, a Relay module of TVM 0.8 to 0.19 or any model that build takes, anew.

    The output's suffix says how: .onnx (where ONNX has the operators), .json (Relax with its
    weights, for tvm_ext.load_model and tvm.ir.load_json), .py (Relax to read).

    \b
    Examples:
      tvm-ext convert old.json --params old.params -o new.onnx
      tvm-ext convert old.relay.txt --params weights.npz -o new.json
      tvm-ext convert old.json --input-shape data:1,3,224,224 -o new.py
    """
    suffix = checked_suffix(output, FORMATS)
    mod = tvm_ext.load_model(
        existing(model),
        input_shapes=dict(shapes) or None,
        params=None if params is None else existing(params),
    )
    path = Path(output)
    with replacing(path) as stream:
        stream.write(serialized(mod, suffix))
    inputs = ", ".join(str(param.name) for param in mod["main"].params)
    click.echo(f"{path}: {FORMATS[suffix]}; inputs {inputs}; {path.stat().st_size / 1e6:.1f} MB")
