"""`tvm-ext classes`."""

from __future__ import annotations

import click

from tvm_ext.cli.models import existing
from tvm_ext.cli.options import Shapes, build_options
from tvm_ext.transfer.kernel_class import kernel_classes


@click.command()
@click.argument("model")
@build_options
def classes(model: str, target: str, shapes: Shapes) -> None:
    """Show the kernels of MODEL and their classes: those with the same operators.

    A schedule of one kernel can be fitted to any other of its class. The last line has each class
    with its number of kernels and its share of the untuned time, as the cost model estimates it.

    \b
    Examples:
      tvm-ext classes model.onnx
      tvm-ext classes bert.onnx --input-shape input_ids:1,128
    """
    found = kernel_classes(existing(model), target, input_shapes=dict(shapes) or None)
    click.echo(str(found))
    click.echo(found.row())
