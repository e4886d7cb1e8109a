"""`tvm-ext info`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

import tvm_ext
from tvm_ext import tables
from tvm_ext.cli.models import existing, is_saved
from tvm_ext.cli.options import Shapes, build_options
from tvm_ext.program import Program


@click.command()
@click.argument("model_or_file")
@build_options
def info(model_or_file: str, target: str, shapes: Shapes) -> None:
    """Show the inputs, outputs, operators and layers of MODEL_OR_FILE, and its target.

    \b
    Examples:
      tvm-ext info model.onnx
      tvm-ext info model.tvmx
    """
    if is_saved(model_or_file):
        exe = tvm_ext.load(model_or_file)
        made, ends = exe.plan, _ends_of_program(exe.program)
    else:
        mod = tvm_ext.load_model(existing(model_or_file), input_shapes=dict(shapes) or None)
        made, ends = tvm_ext.plan(mod, target), _ends_of_module(mod)
    for kind, lines in ends.items():
        click.echo(f"{kind}:")
        for line in lines:
            click.echo(f"  {line}")
    operators = Counter(tables.short_op(op) for layer in made for op in layer.ops)
    counts = ", ".join(f"{name} {n}" for name, n in operators.most_common())
    algorithms = Counter(layer.algorithm for layer in made)
    gflop = sum(layer.gflop for layer in made)
    click.echo(f"operators: {counts}")
    click.echo(
        f"layers: {len(made)} ({', '.join(f'{k} {n}' for k, n in algorithms.most_common())})"
    )
    click.echo(f"work: {gflop:.3f} GFLOP")
    click.echo(f"target: {made.target}")


def _ends_of_program(program: Program) -> dict[str, list[str]]:
    """The inputs and outputs of a saved model, a line each."""

    def line(name: str, number: int) -> str:
        buffer = program.buffers[number]
        return f"{name}: {buffer.dtype} {list(buffer.shape)}"

    return {
        "inputs": [line(*end) for end in program.inputs.items()],
        "outputs": [line(*end) for end in program.outputs.items()],
    }


def _ends_of_module(mod: Any) -> dict[str, list[str]]:
    """The inputs and outputs of a loaded model, a line each."""

    def line(name: str, kind: Any) -> str:
        return f"{name}: {kind.dtype} {[int(d) for d in kind.shape]}"

    function = mod["main"]
    names = [str(n) for n in function.attrs["tvm_ext.output_names"]]
    result = function.ret_ty
    kinds = list(result.fields) if hasattr(result, "fields") else [result]
    return {
        "inputs": [line(p.name, p.ty) for p in function.params],
        "outputs": [line(n, k) for n, k in zip(names, kinds, strict=True)],
    }
