"""`tvm-ext simulate`."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

import tvm_ext
from tvm_ext import tables
from tvm_ext.cli.models import existing
from tvm_ext.cli.options import InputShape, Shapes
from tvm_ext.cli.progress import stderr_bar
from tvm_ext.cli.simulate_report import Part, kind_table, layer_table, summary_lines, write_csv
from tvm_ext.codegen.accelerator import DEPTHWISE, PARALLEL, Accelerator
from tvm_ext.codegen.byoc import Partition
from tvm_ext.codegen.lowering import MAPPINGS
from tvm_ext.codegen.quantized_partition import quantized_partition
from tvm_ext.codegen.sizes import parse_size
from tvm_ext.codegen.time_network import time_network
from tvm_ext.files import replacing

_PICTURES = (".svg", ".png", ".pdf")


@click.command()
@click.argument("model")
@click.option("--pe", "pes", type=int, help="Processing elements; default: 64.")
@click.option("--sram", "sram_bytes", type=parse_size, metavar="SIZE",
              help="The accelerator's memory; default: 512KiB.")  # fmt: skip
@click.option("--parallel", type=click.Choice(PARALLEL),
              help="Whose channels the PEs share out; default: output.")  # fmt: skip
@click.option("--depthwise", type=click.Choice(DEPTHWISE),
              help="Depthwise layers by an instruction of their own, by OP_CONV, or on the CPU; "
              "default: hardware.")  # fmt: skip
@click.option("--accelerator", "description", metavar="FILE.yaml",
              help="A hardware description; the options above replace what it says.")  # fmt: skip
@click.option("--mapping", default="auto", show_default=True, type=click.Choice(list(MAPPINGS)),
              help="How layers are cut and ordered.")  # fmt: skip
@click.option("--gantt", metavar="FILE.svg",
              help="Draw when each unit works on what, for the longest subgraph.")  # fmt: skip
@click.option("--csv", "csv_file", metavar="FILE.csv", help="Write the layers' costs.")
@click.option(
    "--input-shape", "shapes", multiple=True, type=InputShape(),
    help="Shape of an input that the model leaves open; repeatable.",
)  # fmt: skip
def simulate(
    model: str,
    description: str | None,
    mapping: str,
    gantt: str | None,
    csv_file: str | None,
    shapes: Shapes,
    **hardware: Any,
) -> None:
    """Show how long a quantised MODEL takes on an accelerator, layer by layer.

    What the accelerator takes of the model is compiled and simulated; the rest is listed, not
    timed.

    \b
    Examples:
      tvm-ext simulate model.onnx --pe 64 --sram 512KiB
      tvm-ext simulate model.onnx --pe 128 --sram 1MiB --parallel input --mapping baseline
      tvm-ext simulate model.onnx --accelerator edge.yaml --gantt run.svg --csv layers.csv
    """
    if gantt is not None and Path(gantt).suffix not in _PICTURES:
        raise click.UsageError(f"--gantt {gantt}: allowed suffixes: {', '.join(_PICTURES)}")
    base = Accelerator() if description is None else Accelerator.load(existing(description))
    accelerator = replace(base, **{k: v for k, v in hardware.items() if v is not None})
    mod = tvm_ext.load_model(existing(model), input_shapes=dict(shapes) or None)
    found = quantized_partition(mod, accelerator)
    parts = _simulated(found, accelerator, mapping)
    longest = max(parts, key=lambda part: part.result.cycles)
    if csv_file is not None:
        write_csv(parts, Path(csv_file))
    if gantt is not None:
        _draw(longest, Path(gantt))
    click.echo(tables.render(layer_table(parts)))
    click.echo(tables.render(kind_table(parts, accelerator)))
    for line in summary_lines(parts, accelerator, found.share, found.refusals):
        click.echo(line)
    if gantt is not None:
        click.echo(f"{gantt}: {longest.name}")


def _simulated(found: Partition, accelerator: Accelerator, mapping: str) -> list[Part]:
    parts = []
    with stderr_bar(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()) as bar:
        task = bar.add_task("", total=len(found.subgraphs))
        for subgraph in found.subgraphs:
            bar.update(task, description=subgraph.network.name)
            result = time_network(subgraph.network, accelerator, mapping=mapping)
            parts.append(Part(subgraph.network.name, subgraph.batch, result))
            bar.advance(task)
    return parts


def _draw(part: Part, path: Path) -> None:
    # Here, since the other commands start faster without matplotlib.
    from tvm_ext.codegen.plots import gantt

    buffer = io.BytesIO()
    gantt(part.result).savefig(buffer, format=path.suffix[1:])
    with replacing(path) as stream:
        stream.write(buffer.getvalue())
