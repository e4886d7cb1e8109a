"""`tvm-ext prune`."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

import tvm_ext
from tvm_ext.cli.formats import checked_suffix, onnx_bytes, serialized
from tvm_ext.cli.models import existing
from tvm_ext.cli.options import Shapes, build_options
from tvm_ext.cli.prune_options import SCHEMES, Block, LayerDensity, prune_arguments
from tvm_ext.files import replacing
from tvm_ext.frontend.relax_json import is_relax_json
from tvm_ext.frontend.relay.load import is_relay
from tvm_ext.prune import Pruned
from tvm_ext.pruned_onnx import pruned_onnx

FORMATS = {".onnx": "ONNX", ".json": "Relax as TVM saves it, weights inside"}


@click.command()
@click.argument("model")
@click.option("-o", "--output", required=True, help="The file to write: .onnx or .json (Relax).")
@click.option("--scheme", "name", required=True, type=click.Choice(list(SCHEMES)),
              help="What goes: weights by blocks, by patterns or anywhere; channels.")  # fmt: skip
@click.option("--density", type=float, help="Share of the weights (or channels) to keep.")
@click.option("--layer-density", "layer_densities", multiple=True, type=LayerDensity(),
              help="The share for layers whose names match; repeatable.")  # fmt: skip
@click.option("--speedup", type=float,
              help="In place of a density: how many times faster each layer has to be, by the cost "
              "model.")  # fmt: skip
@click.option("--include", multiple=True, metavar="PATTERN",
              help="Prune only layers whose names match; repeatable.")  # fmt: skip
@click.option("--exclude", multiple=True, metavar="PATTERN",
              help="Leave layers alone whose names match; repeatable. Default: the first "
              "convolution and the last dense layer.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Without --exclude: prune those two, too.")
@click.option("--block", type=Block(), help="block: filters and columns; default: auto.")
@click.option("--scope", help="block, magnitude: what competes (layer, block, global).")
@click.option("--lanes", type=int, help="pattern: filters that share theirs; default: 1.")
@click.option("--entries", type=int, help="pattern: weights of each; default: 4.")
@click.option("--patterns", type=int, help="pattern: how many to choose from; default: 8.")
@click.option("--multiple", type=int, help="channel: of what their number is; default: 8.")
@click.option("--report", metavar="FILE.json", help="Also write the table's rows there.")
@build_options
def prune(
    model: str,
    output: str,
    name: str,
    report: str | None,
    target: str,
    shapes: Shapes,
    **options: Any,
) -> None:
    """Set weights of MODEL to zero, or remove channels, and show what is left of each layer.

    An ONNX model keeps its graph, and has zeros in its initialisers. Without the channels it is
    another graph, which is written as `tvm-ext convert` writes it; so is a MODEL that isn't ONNX.

    \b
    Examples:
      tvm-ext prune model.onnx -o pruned.onnx --scheme block --density 0.25 --block 16x65536
      tvm-ext prune model.onnx -o pruned.onnx --scheme pattern --lanes 16 --layer-density c1=0.2
      tvm-ext prune model.onnx -o pruned.onnx --scheme magnitude --density 0.2 --exclude 'head*'
      tvm-ext prune model.onnx -o pruned.onnx --scheme block --speedup 2 --report report.json
      tvm-ext prune model.onnx -o smaller.onnx --scheme channel --density 0.5
    """
    suffix = checked_suffix(output, FORMATS)
    if report is not None and Path(report) == Path(output):
        raise click.UsageError(f"--report {report}: --output writes that file")
    arguments = prune_arguments(name, **options)
    pruned = tvm_ext.prune(
        existing(model), target=target, input_shapes=dict(shapes) or None, **arguments
    )
    files = {Path(output): _content(model, pruned, suffix, shapes, channels=name == "channel")}
    if report is not None:
        files[Path(report)] = json.dumps(pruned.report.rows, indent=2).encode()
    with ExitStack() as stack:
        # All can be written before one takes its place.
        streams = [stack.enter_context(replacing(path)) for path in files]
        for stream, content in zip(streams, files.values(), strict=True):
            stream.write(content)
    click.echo(str(pruned.report))
    size = Path(output).stat().st_size / 1e6
    click.echo(
        f"{output}: {FORMATS[suffix]}; density {pruned.report.density:.3f}, "
        f"{pruned.report.macs_density:.3f} of the multiply-adds; {size:.1f} MB"
    )


def _content(model: str, pruned: Pruned, suffix: str, shapes: Shapes, *, channels: bool) -> bytes:
    """The file, with the model's own graph where that can be."""
    if suffix != ".onnx" or channels or is_relay(model) or is_relax_json(model):
        return serialized(pruned.module, suffix)
    written = pruned_onnx(model, pruned.module, dict(shapes) or None)
    return onnx_bytes(written)
