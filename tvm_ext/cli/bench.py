"""`tvm-ext bench`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np
from rich.table import Table

from tvm_ext import tables, threads
from tvm_ext.cli.errors import UserError
from tvm_ext.cli.models import open_model
from tvm_ext.cli.options import (
    Shapes,
    build_options,
    precision_option,
    threads_option,
    tuning_option,
    use_threads,
)
from tvm_ext.executable import Executable

_ROUND_SECONDS = 0.1
_SETTLE_SECONDS = 0.1


@click.command()
@click.argument("model_or_file")
@click.option("--runs", type=click.IntRange(min=1), default=50, show_default=True)
@click.option(
    "--against", type=click.Choice(["onnxruntime"]), help="Another engine to time, interleaved."
)
@tuning_option
@precision_option
@threads_option
@build_options
def bench(
    model_or_file: str,
    runs: int,
    against: str | None,
    tuning: str,
    precision: str,
    count: int | None,
    target: str,
    shapes: Shapes,
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
    use_threads(count)
    exe = open_model(model_or_file, target, shapes, tuning, precision)
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


def _interleaved(exe: Executable, model: str, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of ours and of ONNX Runtime, turn by turn, each after the other's threads rest."""
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError("onnxruntime is not installed; run: pip install onnxruntime") from error
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
