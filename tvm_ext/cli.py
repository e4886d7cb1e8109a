"""The `tvm-ext` command: build, plan, bench, profile, run and inspect models."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import tvm_ext
from tvm_ext import artifact, tables, threads
from tvm_ext.errors import CallError, TvmExtError
from tvm_ext.executable import Executable
from tvm_ext.plan import Plan

_STAGES = ("load", "graph passes", "plan", "lower", "compile")
_ROUND_SECONDS = 0.1
_SETTLE_SECONDS = 0.1


class _UserError(click.ClickException):
    """One line on stderr, exit code 1."""

    def show(self, file: Any = None) -> None:
        line = "; ".join(part.strip() for part in self.message.splitlines() if part.strip())
        click.echo(f"error: {line}", err=True)


class _Group(click.Group):
    """A group whose commands end in one line for what a user can do wrong."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TvmExtError as error:
            raise _UserError(str(error)) from error
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            raise _UserError(f"{name}{error.strerror or error}") from error


class _InputShape(click.ParamType):
    """``name:1,3,224,224``."""

    name = "NAME:D,D,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, tuple[int, ...]]:
        name, _, dims = value.rpartition(":")
        try:
            shape = tuple(int(d) for d in dims.split(","))
        except ValueError:
            shape = ()
        if not name or not shape:
            self.fail(f"{value!r} is not like x:1,3,224,224", param, ctx)
        return name, shape


def _shared(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_building = _shared(
    click.option(
        "--target", default="native", show_default=True, help="native, or a CPU that LLVM knows."
    ),
    click.option(
        "--input-shape", "shapes", multiple=True, type=_InputShape(),
        help="Shape of an input that the model leaves open; repeatable.",
    ),
)  # fmt: skip
_threads = click.option(
    "--threads", "count", type=click.IntRange(min=1), help="Threads; default: all cores."
)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tvm_ext.__version__, prog_name="tvm-ext")
def main() -> None:
    """Turn real models into fast CPU code.

    \b
    Examples:
      tvm-ext build model.onnx -o model.tvmx
      tvm-ext bench model.tvmx --against onnxruntime
      tvm-ext plan model.onnx -o plan.yaml
    """


@main.command()
@click.argument("model")
@click.option("-o", "--output", required=True, help="The file to write, such as model.tvmx.")
@click.option("--plan", "plan_file", help="A plan to follow, as `tvm-ext plan` writes it.")
@_building
def build(
    model: str,
    output: str,
    plan_file: str | None,
    target: str,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
) -> None:
    """Compile MODEL and save it as one file.

    \b
    Examples:
      tvm-ext build model.onnx -o model.tvmx
      tvm-ext build bert.onnx -o bert.tvmx --input-shape input_ids:1,128
      tvm-ext build model.onnx -o model.tvmx --plan plan.yaml --target core-avx2
    """
    exe = _compile(model, target, shapes, plan_file)
    path = exe.save(output)
    click.echo(
        f"{path}: {len(exe.plan)} layers for {exe.target.name}, {path.stat().st_size / 1e6:.1f} MB"
    )


@main.command()
@click.argument("model")
@click.option("-o", "--output", help="Also write the plan as YAML.")
@_building
def plan(
    model: str,
    output: str | None,
    target: str,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
) -> None:
    """Show what would be decided for MODEL, layer by layer.

    \b
    Examples:
      tvm-ext plan model.onnx
      tvm-ext plan model.onnx -o plan.yaml
    """
    made = tvm_ext.plan(_existing(model), target, input_shapes=dict(shapes) or None)
    if output is not None:
        made.save(output)
    click.echo(str(made))


@main.command()
@click.argument("model_or_file")
@click.option("--runs", type=click.IntRange(min=1), default=50, show_default=True)
@click.option(
    "--against", type=click.Choice(["onnxruntime"]), help="Another engine to time, interleaved."
)
@_threads
@_building
def bench(
    model_or_file: str,
    runs: int,
    against: str | None,
    count: int | None,
    target: str,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
) -> None:
    """Time MODEL_OR_FILE on random inputs.

    A saved file doesn't hold the original model: --against needs an ONNX file.

    \b
    Examples:
      tvm-ext bench model.tvmx --threads 1
      tvm-ext bench model.onnx --against onnxruntime
    """
    if against and Path(model_or_file).suffix != ".onnx":
        raise click.UsageError(f"--against {against} needs an .onnx file, not {model_or_file}")
    _use_threads(count)
    exe = _open(model_or_file, target, shapes)
    click.echo(str(exe.benchmark(runs=runs)))
    if against:
        ours, theirs = _interleaved(exe, model_or_file, runs)
        table = Table(title="interleaved", title_justify="left")
        for name in ("engine", "median ms", "p10", "p90", "time of tvm_ext / this"):
            table.add_column(name, justify="left" if name == "engine" else "right")
        for name, times in (("tvm_ext", ours), (against, theirs)):
            p10, median, p90 = 1e3 * np.percentile(times, [10, 50, 90])
            ratio = float(np.median(ours / times))
            table.add_row(name, f"{median:.3f}", f"{p10:.3f}", f"{p90:.3f}", f"{ratio:.3f}")
        click.echo(tables.render(table))


@main.command()
@click.argument("model_or_file")
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--html", help="Also write a report page there.")
@_threads
@_building
def profile(
    model_or_file: str,
    runs: int,
    html: str | None,
    count: int | None,
    target: str,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
) -> None:
    """Show where the time of MODEL_OR_FILE goes, layer by layer.

    \b
    Examples:
      tvm-ext profile model.tvmx
      tvm-ext profile model.onnx --threads 1 --html report.html
    """
    _use_threads(count)
    exe = _open(model_or_file, target, shapes)
    click.echo(str(exe.profile(runs=runs)))
    if html is not None:
        exe.report(html)


@main.command()
@click.argument("model_or_file")
@click.option(
    "--input", "inputs", multiple=True, required=True, metavar="NAME=FILE.npy|FILE.npz",
    help="An input's array, or a .npz file of arrays by input name; repeatable.",
)  # fmt: skip
@click.option("-o", "--output", help="The .npz file to write the outputs to, by name.")
@_threads
@_building
def run(
    model_or_file: str,
    inputs: tuple[str, ...],
    output: str | None,
    count: int | None,
    target: str,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
) -> None:
    """Run MODEL_OR_FILE once.

    \b
    Examples:
      tvm-ext run model.tvmx --input x=image.npy -o out.npz
      tvm-ext run model.onnx --input inputs.npz
    """
    arrays = _read_inputs(inputs)
    _use_threads(count)
    exe = _open(model_or_file, target, shapes)
    result = exe(arrays)
    values = result if isinstance(result, list) else [result]
    outputs = dict(zip(exe.output_names, values, strict=True))
    if output is not None:
        with artifact.replacing(Path(output)) as stream:
            np.savez(stream, **outputs)
    for name, value in outputs.items():
        click.echo(f"{name}: {value.dtype} {list(value.shape)}, {value.min()} to {value.max()}")


@main.command()
@click.argument("model_or_file")
@_building
def info(model_or_file: str, target: str, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
    """Show the inputs, outputs, operators and layers of MODEL_OR_FILE, and its target.

    \b
    Examples:
      tvm-ext info model.onnx
      tvm-ext info model.tvmx
    """
    if _is_saved(model_or_file):
        exe = tvm_ext.load(model_or_file)
        made = exe.plan
        ends = {
            kind: {n: exe.program.buffers[i] for n, i in numbers.items()}
            for kind, numbers in (("inputs", exe.program.inputs), ("outputs", exe.program.outputs))
        }
        described = {
            kind: [f"{n}: {b.dtype} {list(b.shape)}" for n, b in buffers.items()]
            for kind, buffers in ends.items()
        }
    else:
        mod = tvm_ext.load_model(_existing(model_or_file), input_shapes=dict(shapes) or None)
        made = tvm_ext.plan(mod, target)
        described = _ends(mod)
    for kind, lines in described.items():
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


def _ends(mod: Any) -> dict[str, list[str]]:
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


def _existing(path: str) -> Path:
    if not Path(path).is_file():
        raise FileNotFoundError(2, "no such file", path)
    return Path(path)


def _is_saved(path: str) -> bool:
    return _existing(path).suffix == ".tvmx" or artifact.is_artifact(path)


def _open(path: str, target: str, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> Executable:
    """Load a saved model, or compile one."""
    return tvm_ext.load(path) if _is_saved(path) else _compile(path, target, shapes, None)


def _compile(
    model: str,
    target: str,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    plan_file: str | None,
) -> Executable:
    chosen = None if plan_file is None else Plan.load(plan_file)
    with _progress() as progress:
        return tvm_ext.build(
            _existing(model), target,
            input_shapes=dict(shapes) or None, plan=chosen, progress=progress,
        )  # fmt: skip


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A bar on stderr that `build` moves: a step a stage, and the layer it is at."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=len(_STAGES))

        def tell(stage: str) -> None:
            if stage in _STAGES:
                bar.update(task, completed=_STAGES.index(stage), description=stage)
            else:
                bar.update(task, description=f"lower {stage}")

        yield tell


def _use_threads(count: int | None) -> None:
    if count is None:
        return
    os.environ["TVM_NUM_THREADS"] = str(count)
    try:
        threads.use(count)
    except ValueError as error:
        raise _UserError(str(error)) from error


def _read_inputs(words: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The arrays of ``--input``."""
    arrays: dict[str, np.ndarray] = {}
    for word in words:
        name, equals, path = word.rpartition("=")
        if not equals and not word.endswith(".npz"):
            raise click.UsageError(f"--input {word} is not like NAME=FILE.npy or FILE.npz")
        try:
            stored = np.load(_existing(path), allow_pickle=False)
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


def _interleaved(exe: Executable, model: str, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of ours and of ONNX Runtime, turn by turn, each after the other's threads rest."""
    try:
        import onnxruntime
    except ImportError as error:
        raise _UserError("onnxruntime is not installed; run: pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads.default_threads()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    inputs: Mapping[str, np.ndarray] = exe.random_inputs()
    exe.set_inputs(inputs)
    engines = (exe.run, lambda: session.run(None, inputs))
    times: list[list[float]] = [[], []]
    for _ in range(max(3, runs // 10)):
        for engine, medians in zip(engines, times, strict=True):
            time.sleep(_SETTLE_SECONDS)
            engine()
            calls: list[float] = []
            while sum(calls) < _ROUND_SECONDS:
                start = time.perf_counter()
                engine()
                calls.append(time.perf_counter() - start)
            medians.append(float(np.median(calls)))
    return np.array(times[0]), np.array(times[1])
