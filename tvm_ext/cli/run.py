"""`tvm-ext run`."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from tvm_ext.cli.models import existing, open_model
from tvm_ext.cli.options import Shapes, build_options, threads_option, use_threads
from tvm_ext.errors import CallError
from tvm_ext.files import replacing


@click.command()
@click.argument("model_or_file")
@click.option(
    "--input", "inputs", multiple=True, required=True, metavar="NAME=FILE.npy|FILE.npz",
    help="An input's array, or a .npz file of arrays by input name; repeatable.",
)  # fmt: skip
@click.option("-o", "--output", help="The .npz file to write the outputs to, by name.")
@threads_option
@build_options
def run(
    model_or_file: str,
    inputs: tuple[str, ...],
    output: str | None,
    count: int | None,
    target: str,
    shapes: Shapes,
) -> None:
    """Run MODEL_OR_FILE once.

    \b
    Examples:
      tvm-ext run model.tvmx --input x=image.npy -o out.npz
      tvm-ext run model.onnx --input inputs.npz
    """
    arrays = _read_inputs(inputs)
    use_threads(count)
    exe = open_model(model_or_file, target, shapes)
    result = exe(arrays)
    values = result if isinstance(result, list) else [result]
    outputs = dict(zip(exe.output_names, values, strict=True))
    if output is not None:
        with replacing(Path(output)) as stream:
            np.savez(stream, **outputs)
    for name, value in outputs.items():
        click.echo(f"{name}: {value.dtype} {list(value.shape)}, {value.min()} to {value.max()}")


def _read_inputs(words: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The arrays of ``--input``."""
    arrays: dict[str, np.ndarray] = {}
    for word in words:
        name, equals, path = word.rpartition("=")
        if not equals and not word.endswith(".npz"):
            raise click.UsageError(f"--input {word} is not like NAME=FILE.npy or FILE.npz")
        try:
            stored = np.load(existing(path), allow_pickle=False)
        except ValueError as error:
            raise CallError(f"{path} is not a .npy or .npz file of plain arrays") from error
        if isinstance(stored, np.ndarray):
            arrays[name] = stored
            continue
        with stored:
            if not equals:
                arrays.update(stored)
            elif name in stored:
                arrays[name] = stored[name]
            else:
                raise CallError(f"{path} has no array {name!r}; it has {list(stored)}")
    return arrays
